#include "tools/base/cli/command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "tools/base/cli/standard.h"
#include "tools/base/text/nearest.h"
#include "tools/base/text/whole_file.h"

namespace leat::cli {
namespace {

bool is_number(Type type) { return type == Type::integer || type == Type::real; }

const Option* by_name(const Command& command, std::string_view name) {
  for (const Option& option : command.options) {
    if (option.name == name) return &option;
  }
  for (const Option& option : kStandardOptions) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

const Option* by_letter(const Command& command, char letter) {
  for (const Option& option : command.options) {
    if (option.letter == letter) return &option;
  }
  for (const Option& option : kStandardOptions) {
    if (option.letter == letter) return &option;
  }
  return nullptr;
}

std::string unknown_option(const Command& command, std::string_view word, std::string_view name) {
  std::vector<std::string> names;
  for (const Option& option : command.options) names.emplace_back(option.name);
  for (const Option& option : kStandardOptions) names.emplace_back(option.name);
  const std::string near = text::nearest(name, names);
  std::string text = "unknown option '" + std::string(word) + "'";
  if (!near.empty()) return text + "; did you mean '--" + near + "'?";
  return text + "; '" + std::string(command.name) + " --help' lists them";
}

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string bounds_text(const Option& option) {
  const bool low = option.min > -std::numeric_limits<double>::infinity();
  const bool high = option.max < std::numeric_limits<double>::infinity();
  if (low && high) return "from " + number_text(option.min) + " to " + number_text(option.max);
  if (low) return "of at least " + number_text(option.min);
  if (high) return "of at most " + number_text(option.max);
  return {};
}

// Empty: the value fits the option. Otherwise what was expected.
std::string value_problem(const Option& option, std::string_view value) {
  if (option.type == Type::choice) {
    for (std::string_view rest = option.choices; !rest.empty();) {
      const std::size_t bar = std::min(rest.find('|'), rest.size());
      if (rest.substr(0, bar) == value) return {};
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
    return "one of " + std::string(option.choices);
  }
  if (!is_number(option.type)) return value.empty() ? "something that is not empty" : "";
  double number = 0;
  const char* end = value.data() + value.size();
  bool whole = false;
  if (option.type == Type::integer) {
    std::int64_t integer = 0;
    const auto parsed = std::from_chars(value.data(), end, integer);
    whole = parsed.ec == std::errc{} && parsed.ptr == end;
    number = static_cast<double>(integer);
  } else {
    const auto parsed = std::from_chars(value.data(), end, number);
    whole = parsed.ec == std::errc{} && parsed.ptr == end && number == number;
  }
  const std::string kind = option.type == Type::integer ? "an integer" : "a number";
  const std::string bounds = bounds_text(option);
  if (whole && number >= option.min && number <= option.max) return {};
  return bounds.empty() ? kind : kind + " " + bounds;
}

}  // namespace

// ---- parsing ----

struct Parser {
  const Command& command;
  std::span<const std::string> words;
  Parse result{.arguments = Arguments(command), .exit_status = -1, .out = {}, .err = {}};

  Parse& error(const std::string& text) {
    result.exit_status = kBadInput;
    result.err = std::string(command.name) + ": " + text + "\n";
    return result;
  }

  // Whether the word behind an output option is its file.
  bool names_output(const std::string& word) const {
    if (command.positionals.empty()) return word == "-" || !word.starts_with("-");
    return word.ends_with(".json") && !word.starts_with("-");
  }

  // True: the option was taken; `i` stands on its last word.
  bool take(const Option& option, std::string_view shown, const std::string* inline_value, std::size_t& i) {
    auto& values = result.arguments.values_[std::string(option.name)];
    if (option.type == Type::flag) {
      if (inline_value != nullptr) return error("'" + std::string(shown) + "' takes no value"), false;
      values.emplace_back("true");
      return true;
    }
    std::string value;
    if (inline_value != nullptr) {
      value = *inline_value;
    } else if (option.type == Type::output) {
      value = i + 1 < words.size() && names_output(words[i + 1]) ? words[++i] : "-";
    } else {
      const bool next_is_option = i + 1 < words.size() && words[i + 1].starts_with("--") &&
                                  by_name(command, std::string_view(words[i + 1]).substr(2)) != nullptr;
      if (i + 1 >= words.size() || next_is_option) {
        return error("'" + std::string(shown) + "' needs a value: " + std::string(shown) + " " +
                     std::string(option.value)),
               false;
      }
      value = words[++i];
    }
    if (const std::string expected = value_problem(option, value); !expected.empty()) {
      return error("'" + std::string(shown) + "' is '" + value + "', but must be " + expected), false;
    }
    if (!option.repeat && !values.empty())
      return error("'" + std::string(shown) + "' is given twice; give it once"), false;
    values.push_back(std::move(value));
    return true;
  }

  bool long_option(std::size_t& i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string shown = word.substr(0, equals);
    const std::string name = shown.substr(2);
    const Option* option = by_name(command, name);
    if (option == nullptr) return error(unknown_option(command, shown, name)), false;
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    return take(*option, shown, equals == std::string::npos ? nullptr : &value, i);
  }

  bool short_options(std::size_t& i) {
    const std::string word = words[i];
    for (std::size_t at = 1; at < word.size(); ++at) {
      const std::string shown = std::string("-") + word[at];
      const Option* option = by_letter(command, word[at]);
      if (option == nullptr) return error(unknown_option(command, shown, shown.substr(1))), false;
      if (option->type == Type::flag) {
        if (!take(*option, shown, nullptr, i)) return false;
        continue;
      }
      const std::string rest = word.substr(at + 1);
      return take(*option, shown, rest.empty() ? nullptr : &rest, i);
    }
    return true;
  }

  bool all_words() {
    bool options_ended = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (!options_ended && word == "--") {
        options_ended = true;
      } else if (!options_ended && word.starts_with("--")) {
        if (!long_option(i)) return false;
      } else if (!options_ended && word.size() > 1 && word[0] == '-') {
        if (!short_options(i)) return false;
      } else {
        result.arguments.positionals_.push_back(word);
      }
    }
    return true;
  }

  bool standard_option() {
    const Arguments& given = result.arguments;
    if (given.values_.contains("help")) {
      result.out = help_text(command);
    } else if (given.values_.contains("version")) {
      result.out = version_text(command);
    } else if (given.values_.contains("man")) {
      result.out = man_page(command);
    } else {
      return false;
    }
    result.exit_status = 0;
    return true;
  }

  bool complete() {
    for (const Option& option : command.options) {
      if (option.required && !result.arguments.given(option.name)) {
        return error("'--" + std::string(option.name) + " " + std::string(option.value) +
                     "' is missing: " + std::string(option.help)),
               false;
      }
      if (option.type != Type::output || !result.arguments.given(option.name)) continue;
      if (const std::string wrong = text::unwritable(result.arguments.text(option.name)); !wrong.empty())
        return error(wrong), false;
    }
    std::size_t min = 0, max = 0;
    for (const Positional& positional : command.positionals) {
      if (result.arguments.positionals_.size() < min + positional.min) {
        return error(std::string(positional.name) + " is missing: " + std::string(positional.help)), false;
      }
      min += positional.min;
      max += positional.max;
    }
    if (result.arguments.positionals_.size() > max) {
      return error("'" + result.arguments.positionals_[max] + "' is one argument too many; '" +
                   std::string(command.name) + " --help' shows the usage"),
             false;
    }
    return true;
  }
};

Parse parse(const Command& command, std::span<const std::string> words) {
  Parser parser{.command = command, .words = words};
  // A question about the program is answered even where the rest of the line is incomplete.
  if (parser.all_words() && !parser.standard_option()) parser.complete();
  return std::move(parser.result);
}

Arguments parse_or_exit(const Command& command, int argc, const char* const* argv) {
  std::vector<std::string> words;
  if (argc > 1) words.assign(argv + 1, argv + argc);
  Parse parsed = parse(command, words);
  if (parsed.exit_status >= 0) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    std::exit(parsed.exit_status);
  }
  return std::move(parsed.arguments);
}

int fail(std::string_view program, std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    const bool goes_on = line.starts_with(' ');
    std::fprintf(stderr, "%.*s%s%.*s\n", goes_on ? 0 : static_cast<int>(program.size()), program.data(),
                 goes_on ? "" : ": ", static_cast<int>(line.size()), line.data());
  }
  return kBadInput;
}

// ---- what was given ----

const Option& Arguments::find(std::string_view name, bool (*fits)(Type)) const {
  const Option* option = by_name(*command_, name);
  if (option == nullptr || !fits(option->type)) {
    std::fprintf(stderr, "%.*s: bug: option '%.*s' is not in the table with this type\n",
                 static_cast<int>(command_->name.size()), command_->name.data(), static_cast<int>(name.size()),
                 name.data());
    std::abort();
  }
  return *option;
}

std::string_view Arguments::last(const Option& option) const {
  const auto it = values_.find(option.name);
  return it == values_.end() ? option.fallback : std::string_view(it->second.back());
}

bool Arguments::given(std::string_view name) const {
  (void)find(name, [](Type) { return true; });
  return values_.contains(name);
}
bool Arguments::flag(std::string_view name) const {
  return !last(find(name, [](Type type) { return type == Type::flag; })).empty();
}
std::string Arguments::text(std::string_view name) const {
  return std::string(last(find(name, [](Type type) { return type != Type::flag && !is_number(type); })));
}
std::vector<std::string> Arguments::texts(std::string_view name) const {
  const Option& option = find(name, [](Type type) { return type != Type::flag; });
  if (const auto it = values_.find(name); it != values_.end()) return it->second;
  return option.fallback.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(option.fallback)};
}
std::int64_t Arguments::integer(std::string_view name) const {
  const std::string_view value = last(find(name, [](Type type) { return type == Type::integer; }));
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}
double Arguments::real(std::string_view name) const {
  const std::string_view value = last(find(name, is_number));
  double number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

std::string table_problem(const Command& command) {
  const std::string at = std::string(command.name) + ": ";
  if (command.name.empty() || command.summary.empty()) return at + "a command needs a name and a summary";
  for (std::size_t i = 0; i < command.options.size(); ++i) {
    const Option& option = command.options[i];
    const std::string name = at + "--" + std::string(option.name) + " ";
    if (option.help.empty()) return name + "has no help";
    if (option.type != Type::flag && option.value.empty() && option.type != Type::choice)
      return name + "needs a word for its value";
    if (option.type == Type::choice && option.choices.empty()) return name + "has no choices";
    if (option.type == Type::flag && !option.fallback.empty()) return name + "is a flag and can have no default";
    if (!option.fallback.empty() && !value_problem(option, option.fallback).empty())
      return name + "has a default that it would refuse";
    if (is_number(option.type) && option.fallback.empty() && !option.required && option.min > 0)
      return name + "reads as 0 when not given, which is out of its bounds";
    for (const Option& standard : kStandardOptions) {
      if (standard.name == option.name || (option.letter != 0 && standard.letter == option.letter))
        return name + "hides a standard option";
    }
    for (std::size_t j = 0; j < i; ++j) {
      const Option& other = command.options[j];
      if (other.name == option.name || (option.letter != 0 && other.letter == option.letter))
        return name + "is there twice";
    }
  }
  for (std::size_t i = 0; i + 1 < command.positionals.size(); ++i) {
    if (command.positionals[i].min != command.positionals[i].max)
      return at + "only the last positional may vary in number";
  }
  return {};
}

}  // namespace leat::cli
