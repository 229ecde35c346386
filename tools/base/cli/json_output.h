// `--json [FILE]`, the same in every program: without FILE the JSON is all that goes to standard output; with FILE it
// is written there, whole or not at all, and the text is printed as ever.
//
// A program puts json_option() into its table and writes:
//   const cli::JsonOutput json(args);
//   if (!json.alone()) print_table(figures);
//   return json.write(to_json(figures).dump(1));
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "tools/base/cli/command.h"

namespace leat::cli {

[[nodiscard]] constexpr Option json_option(std::string_view help = "print JSON in place of text") {
  return {.name = "json", .type = Type::output, .value = "FILE", .help = help};
}

class JsonOutput {
 public:
  explicit JsonOutput(const Arguments& arguments);
  [[nodiscard]] bool wanted() const { return !file_.empty(); }
  [[nodiscard]] bool alone() const { return file_ == "-"; }  // on standard output: no other text goes there
  // The text, ended by a line feed, if it is wanted at all. Exit status: 0, or kBadInput with one line on stderr.
  [[nodiscard]] int write(std::string text) const;

 private:
  std::string program_, file_;
};

}  // namespace leat::cli
