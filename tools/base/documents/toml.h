// TOML files, read by toml++: every file of the project that reads TOML includes this in the place of <toml++/toml.h>,
// so that all are compiled with the same settings, and calls parse_toml() in the place of toml::parse().
//
// toml++ up to 3.4 asks a table whether a letter is white space, wherever white space may stand, and declares to the
// compiler that most letters from U+00A0 to U+FEFF (Latin with accents, Greek, Cyrillic, kana) are never asked for.
// They are, by valid texts (behind a backslash in a string of several lines) and by many that are not, and what happens
// then is undefined. So none of these letters reaches the library: before the text is parsed each is replaced by one of
// plane 15, which the table answers for, and every key, string and message is given its own letters back. Plane 15 is
// private use; a text that has letters of it is refused.
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace leat {

struct ParsedToml {
  toml::table root;
  std::string error;                   // what is wrong, in one line; empty: nothing is
  std::uint32_t line = 0, column = 0;  // of the error; letters are counted, not bytes
};
// `text` need not be UTF-8. Any thread.
ParsedToml parse_toml(std::string_view text);

}  // namespace leat
