// One table per command: its options, their defaults, bounds and help. Parsing, `--help`, `--man` (roff), `--version`,
// shell completion and the messages for bad input all read the table, so that they cannot disagree.
//
// A program writes:
//   constexpr cli::Option kOptions[] = {{.name = "streams", .letter = 'n', .type = cli::Type::integer, .value = "N",
//                                        .fallback = "1", .min = 1, .max = 256, .help = "streams to open"}};
//   constexpr cli::Command kCommand = {.name = "leat-thing", .summary = "does the thing", .options = kOptions};
//   int main(int argc, char** argv) {
//     const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
//     return serve(args.integer("streams"));
//   }
//
// Every command understands --help (-h), --version and --man besides its own options. Bad input ends with one line on
// stderr that names the nearest option, and exit status 2. Thread rule: values; no globals.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::cli {

inline constexpr int kBadInput = 2;  // exit status of every "one line that says what and what to do"

// output: a file to write, whose name may be left out for standard output ("-"): `--json`, `--json FILE`,
// `--json=FILE`. Where the command takes words of its own, the word behind it is FILE only if it ends in ".json", so
// that no input is taken for an output. That the file can be written is checked with the rest of the line.
enum class Type : std::uint8_t { flag, text, integer, real, choice, path, output };

struct Option {
  std::string_view name = {};  // long name without the dashes
  char letter = 0;             // short name; 0: none
  Type type = Type::flag;
  std::string_view value = {};                            // what stands for the value in help: "N", "FILE", "MS"
  std::string_view choices = {};                          // Type::choice: "a|b|c"
  std::string_view fallback = {};                         // default as text; empty: none (given() tells)
  double min = -std::numeric_limits<double>::infinity();  // numbers only; both ends allowed
  double max = std::numeric_limits<double>::infinity();
  bool required = false;
  bool repeat = false;         // may be given several times; texts() returns all
  std::string_view help = {};  // one sentence, no full stop needed
};

// A number between `min` and `max`, both allowed; `value` stands for it in help.
[[nodiscard]] constexpr Option integer_option(std::string_view name, std::string_view fallback, double min, double max,
                                              std::string_view help, std::string_view value = "N") {
  return {
      .name = name, .type = Type::integer, .value = value, .fallback = fallback, .min = min, .max = max, .help = help};
}
[[nodiscard]] constexpr Option real_option(std::string_view name, std::string_view fallback, double min, double max,
                                           std::string_view help, std::string_view value) {
  return {.name = name, .type = Type::real, .value = value, .fallback = fallback, .min = min, .max = max, .help = help};
}

struct Positional {
  std::string_view name = {};  // "CONFIG", "SOURCE"
  std::string_view help = {};
  std::uint32_t min = 1, max = 1;  // how many
};

struct Example {
  std::string_view line = {};  // as typed
  std::string_view text = {};  // what it does
};

struct Command {
  std::string_view name = {};         // "leatd", "leat feed"
  std::string_view summary = {};      // half a line
  std::string_view description = {};  // paragraphs separated by an empty line; may be empty
  std::span<const Option> options = {};
  std::span<const Positional> positionals = {};
  std::span<const Example> examples = {};
  std::string_view see_also = {};     // "leatd(8), leat(1)"
  std::string_view exit_status = {};  // replaces the standard text: 0 on success, 2 on bad input
  int section = 1;                    // of the manual; 8 for the daemon
};

// What was given, checked against the table. Asking for a name that the table lacks, or with the wrong type, is a bug
// of the program and aborts.
class Arguments {
 public:
  explicit Arguments(const Command& command) : command_(&command) {}

  [[nodiscard]] bool given(std::string_view name) const;  // on the command line, whatever its default
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::string text(
      std::string_view name) const;  // text, choice, path, output: the last one given, or the default
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }
  [[nodiscard]] const Command& command() const { return *command_; }

 private:
  friend struct Parser;
  const Option& find(std::string_view name, bool (*fits)(Type)) const;
  std::string_view last(const Option& option) const;
  const Command* command_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
};

// exit_status < 0: go on with `arguments`. Otherwise print `out` to stdout, `err` to stderr, and leave with
// exit_status.
struct Parse {
  Arguments arguments;
  int exit_status = -1;
  std::string out, err;
};
[[nodiscard]] Parse parse(const Command& command, std::span<const std::string> words);
[[nodiscard]] Arguments parse_or_exit(const Command& command, int argc, const char* const* argv);

[[nodiscard]] std::string help_text(const Command& command);
[[nodiscard]] std::string man_page(const Command& command);
[[nodiscard]] std::string version_text(const Command& command);
// Empty: the table is sound. Otherwise one line about the first fault (a doubled name, a default out of bounds, no
// help).
[[nodiscard]] std::string table_problem(const Command& command);

// Prints "PROGRAM: TEXT" to stderr, each line of it so but for those that begin with a space, and returns kBadInput, so
// that a command can `return cli::fail(...)`.
int fail(std::string_view program, std::string_view text);

// ---- programs made of sub-commands ----
struct Subcommand {
  const Command* command;                  // its name is "PROGRAM WORD"
  int (*run)(const Arguments& arguments);  // returns the exit status
};
struct Program {
  std::string_view name, summary, description;
  std::span<const Subcommand* const> subcommands;
};
// `PROGRAM --help`, `PROGRAM help WORD`, `PROGRAM --man`, `PROGRAM completion` (bash), `PROGRAM manual FOLDER` (all
// pages); otherwise the named sub-command.
int run_program(const Program& program, int argc, const char* const* argv);
[[nodiscard]] std::string program_man_page(const Program& program);
[[nodiscard]] std::string bash_completion(const Program& program);
[[nodiscard]] std::string_view word_of(const Command& command);  // "feed" of "leat feed"

}  // namespace leat::cli
