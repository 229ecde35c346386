// Help and manual pages, both from the table.
#include <algorithm>

#include "tools/base/cli/command.h"
#include "tools/base/cli/standard.h"

#ifndef LEAT_VERSION
#error "LEAT_VERSION comes from the build"
#endif

namespace leat::cli {
namespace {

constexpr std::size_t kHelpColumn = 26, kHelpWidth = 96;

std::string value_word(const Option& option) {
  if (option.type == Type::output) return "[" + std::string(option.value) + "]";
  return std::string(option.type == Type::choice ? option.choices : option.value);
}

std::string usage(const Command& command) {
  std::string line(command.name);
  if (!command.options.empty()) line += " [OPTION ...]";
  for (const Option& option : command.options) {
    if (option.required) line += " --" + std::string(option.name) + " " + value_word(option);
  }
  for (const Positional& positional : command.positionals) {
    const std::string name = std::string(positional.name) + (positional.max > 1 ? " ..." : "");
    line += positional.min == 0 ? " [" + name + "]" : " " + name;
  }
  return line;
}

void wrap(std::string& out, std::string_view text, std::size_t indent, std::size_t column) {
  std::size_t at = column;
  bool first = true;
  while (!text.empty()) {
    const std::size_t gap = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, gap);
    if (!first && at + 1 + word.size() > kHelpWidth) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    first = false;
    text.remove_prefix(std::min(gap + 1, text.size()));
  }
  out += '\n';
}

void entry(std::string& out, std::string head, std::string_view text) {
  head = "  " + head;
  if (head.size() + 2 > kHelpColumn) {
    out += head + "\n" + std::string(kHelpColumn, ' ');
  } else {
    out += head + std::string(kHelpColumn - head.size(), ' ');
  }
  wrap(out, text, kHelpColumn, kHelpColumn);
}

std::string option_head(const Option& option) {
  std::string head = option.letter != 0 ? std::string("-") + option.letter + ", --" : std::string("    --");
  head += option.name;
  if (option.type != Type::flag) head += " " + value_word(option);
  return head;
}

std::string option_text(const Command& command, const Option& option) {
  std::string text(option.help);
  if (option.type == Type::output) {
    text += "; with FILE, write it there and print the text as ever";
    if (!command.positionals.empty())
      text += " (FILE ends in .json here; any other name is written --" + std::string(option.name) + "=FILE)";
  }
  if (option.repeat) text += " (may be repeated)";
  if (option.required) text += " (required)";
  if (!option.fallback.empty()) text += " (default: " + std::string(option.fallback) + ")";
  return text;
}

std::string_view exit_text(const Command& command) {
  return command.exit_status.empty()
             ? std::string_view(
                   "0 on success, 2 on bad input or when the work could not be done; one line on stderr says why.")
             : command.exit_status;
}

// Paragraphs of a description, separated by empty lines.
template <class F>
void paragraphs(std::string_view text, F&& each) {
  while (!text.empty()) {
    const std::size_t gap = std::min(text.find("\n\n"), text.size());
    each(text.substr(0, gap));
    text.remove_prefix(std::min(gap + 2, text.size()));
  }
}

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string page_name(std::string_view name) {
  std::string page(name);
  std::replace(page.begin(), page.end(), ' ', '-');
  return page;
}

std::string page_head(std::string_view name, std::string_view summary, int section) {
  std::string title = page_name(name);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return ".TH " + roff(title) + " " + std::to_string(section) +
         " \"\" \"Leat " LEAT_VERSION "\" \"Leat manual\"\n.SH NAME\n" + roff(page_name(name)) + " \\- " +
         roff(summary) + "\n";
}

}  // namespace

std::string_view word_of(const Command& command) {
  const std::size_t space = command.name.rfind(' ');
  return space == std::string_view::npos ? command.name : command.name.substr(space + 1);
}

std::string version_text(const Command& command) { return std::string(command.name) + " (Leat) " LEAT_VERSION "\n"; }

std::string help_text(const Command& command) {
  std::string out =
      std::string(command.name) + ": " + std::string(command.summary) + "\n\nUsage: " + usage(command) + "\n";
  paragraphs(command.description, [&](std::string_view paragraph) {
    out += '\n';
    wrap(out, paragraph, 0, 0);
  });
  if (!command.positionals.empty()) out += "\nArguments:\n";
  for (const Positional& positional : command.positionals) entry(out, std::string(positional.name), positional.help);
  out += "\nOptions:\n";
  for (const Option& option : command.options) entry(out, option_head(option), option_text(command, option));
  for (const Option& option : kStandardOptions) entry(out, option_head(option), option_text(command, option));
  if (!command.examples.empty()) out += "\nExamples:\n";
  for (const Example& example : command.examples) {
    out += "  " + std::string(example.line) + "\n" + std::string(6, ' ');
    wrap(out, example.text, 6, 6);
  }
  return out;
}

std::string man_page(const Command& command) {
  std::string out = page_head(command.name, command.summary, command.section);
  out += ".SH SYNOPSIS\n.nf\n" + roff(usage(command)) + "\n.fi\n";
  if (!command.description.empty()) out += ".SH DESCRIPTION\n";
  bool first = true;
  paragraphs(command.description, [&](std::string_view paragraph) {
    out += (first ? "" : ".PP\n") + roff(paragraph) + "\n";
    first = false;
  });
  if (!command.positionals.empty()) out += ".SH ARGUMENTS\n";
  for (const Positional& positional : command.positionals)
    out += ".TP\n.I " + roff(positional.name) + "\n" + roff(positional.help) + "\n";
  out += ".SH OPTIONS\n";
  const auto option_entry = [&](const Option& option) {
    out += ".TP\n";
    if (option.letter != 0) out += std::string("\\fB\\-") + option.letter + "\\fR, ";
    out += "\\fB\\-\\-" + roff(option.name) + "\\fR";
    if (option.type != Type::flag) out += " \\fI" + roff(value_word(option)) + "\\fR";
    out += "\n" + roff(option_text(command, option)) + "\n";
  };
  for (const Option& option : command.options) option_entry(option);
  for (const Option& option : kStandardOptions) option_entry(option);
  out += ".SH EXIT STATUS\n" + roff(exit_text(command)) + "\n";
  if (!command.examples.empty()) out += ".SH EXAMPLES\n";
  for (const Example& example : command.examples)
    out += ".TP\n.B " + roff(example.line) + "\n" + roff(example.text) + "\n";
  if (!command.see_also.empty()) out += ".SH SEE ALSO\n" + roff(command.see_also) + "\n";
  return out;
}

std::string program_man_page(const Program& program) {
  std::string out = page_head(program.name, program.summary, 1);
  out += ".SH SYNOPSIS\n.nf\n" + roff(program.name) + " COMMAND [OPTION ...]\n.fi\n.SH DESCRIPTION\n";
  bool first = true;
  paragraphs(program.description, [&](std::string_view paragraph) {
    out += (first ? "" : ".PP\n") + roff(paragraph) + "\n";
    first = false;
  });
  out += ".SH COMMANDS\n";
  std::string see;
  for (const Subcommand* sub : program.subcommands) {
    out += ".TP\n.B " + roff(word_of(*sub->command)) + "\n" + roff(sub->command->summary) + "\n";
    see +=
        (see.empty() ? "" : ", ") + page_name(sub->command->name) + "(" + std::to_string(sub->command->section) + ")";
  }
  return out + ".SH SEE ALSO\n" + roff(see) + ", leatd(8)\n";
}

}  // namespace leat::cli
