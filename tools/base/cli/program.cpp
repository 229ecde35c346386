// A program made of sub-commands: finding the one that is meant, its help, the completion script.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tools/base/cli/command.h"
#include "tools/base/cli/standard.h"
#include "tools/base/text/nearest.h"

namespace leat::cli {
namespace {

const Subcommand* find(const Program& program, std::string_view word) {
  for (const Subcommand* sub : program.subcommands) {
    if (word_of(*sub->command) == word) return sub;
  }
  return nullptr;
}

std::string program_help(const Program& program) {
  std::string out = std::string(program.name) + ": " + std::string(program.summary) +
                    "\n\nUsage: " + std::string(program.name) + " COMMAND [OPTION ...]\n\n" +
                    std::string(program.description) + "\n\nCommands:\n";
  for (const Subcommand* sub : program.subcommands) {
    std::string head = "  " + std::string(word_of(*sub->command));
    head.resize(std::max<std::size_t>(head.size() + 2, 14), ' ');
    out += head + std::string(sub->command->summary) + "\n";
  }
  out += "  help        help of one command: '" + std::string(program.name) + " help COMMAND'\n";
  out += "  completion  completion for bash: 'source <(" + std::string(program.name) + " completion)'\n";
  out += "  manual      writes the manual pages: '" + std::string(program.name) + " manual FOLDER'\n";
  return out;
}

int unknown_command(const Program& program, const std::string& word) {
  std::vector<std::string> names;
  for (const Subcommand* sub : program.subcommands) names.emplace_back(word_of(*sub->command));
  const std::string near = text::nearest(word, names);
  const std::string hint =
      near.empty() ? "'" + std::string(program.name) + " --help' lists them" : "did you mean '" + near + "'?";
  const bool option = word.starts_with("-");
  return fail(program.name, std::string(option ? "unknown option '" : "no command '") + word + "'; " + hint);
}

// One page for the program and one for each sub-command, FOLDER/NAME.SECTION.
int write_manual(const Program& program, const std::string& folder) {
  const auto write = [&](std::string name, int section, const std::string& page) {
    std::replace(name.begin(), name.end(), ' ', '-');
    std::ofstream file(folder + "/" + name + "." + std::to_string(section));
    file << page << std::flush;
    return file.good();
  };
  bool written = write(std::string(program.name), 1, program_man_page(program));
  for (const Subcommand* sub : program.subcommands)
    written = written && write(std::string(sub->command->name), sub->command->section, man_page(*sub->command));
  return written ? 0 : fail(program.name, "'" + folder + "' cannot be written; name a folder that exists");
}

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run(const Program& program, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (words.empty()) {
    std::fputs(program_help(program).c_str(), stderr);
    return kBadInput;
  }
  const std::string& word = words[0];
  if (word == "--help" || word == "-h" || (word == "help" && words.size() == 1)) return print(program_help(program));
  if (word == "--version")
    return print(version_text({.name = program.name, .summary = program.summary, .description = {}}));
  if (word == "--man") return print(program_man_page(program));
  if (word == "completion") return print(bash_completion(program));
  if (word == "manual")
    return words.size() == 2 ? write_manual(program, words[1])
                             : fail(program.name, "'manual' needs a folder to write the pages into");
  const bool help = word == "help";
  const Subcommand* sub = find(program, help ? words[1] : word);
  if (sub == nullptr) return unknown_command(program, help ? words[1] : word);
  if (help) return print(help_text(*sub->command));
  const Parse parsed = parse(*sub->command, std::span(words).subspan(1));
  if (parsed.exit_status >= 0) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return parsed.exit_status;
  }
  return sub->run(parsed.arguments);
}

bool reader_gone() {
  pollfd end{STDOUT_FILENO, 0, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLNVAL)) != 0;
}

}  // namespace

// A full disk shows only here, since what is printed is kept until there is much of it. Whoever closed the output, or
// reads it no more, wants no line about it.
int run_program(const Program& program, int argc, const char* const* argv) {
  const int status = run(program, argc, argv);
  const bool lost = std::ferror(stdout) != 0;
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (status != 0 || (flushed && !lost) || errno == EPIPE || errno == EBADF || reader_gone()) return status;
  return fail(program.name, "standard output: cannot be written" +
                                (errno != 0 ? std::string(": ") + std::strerror(errno) : std::string()) +
                                "; not all that was to be said is there");
}

std::string bash_completion(const Program& program) {
  const std::string name(program.name);
  std::string out =
      "_" + name +
      "() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" options=\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    options=\"";
  for (const Subcommand* sub : program.subcommands) out += std::string(word_of(*sub->command)) + " ";
  out += "help completion\"\n  else\n    case \"${COMP_WORDS[1]}\" in\n";
  for (const Subcommand* sub : program.subcommands) {
    out += "      " + std::string(word_of(*sub->command)) + ") options=\"";
    for (const Option& option : sub->command->options) out += "--" + std::string(option.name) + " ";
    for (const Option& option : kStandardOptions) out += "--" + std::string(option.name) + " ";
    out += "\" ;;\n";
  }
  return out + "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n}\ncomplete -o default -F _" +
         name + " " + name + "\n";
}

}  // namespace leat::cli
