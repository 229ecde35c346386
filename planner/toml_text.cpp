#include "planner/toml_text.h"

namespace leat::planner {
namespace {

// Whether a string may begin here: elsewhere a quote is a stray itself. A dot joins keys, which stand before a line's
// first "=" but in inline tables, where a letter beyond ASCII is not worth a parser.
bool begins_string(std::string_view text, std::size_t at) noexcept {
  constexpr std::string_view kBefore = " \t\r\n=[{,";
  if (at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos) return true;
  const std::size_t last = text.find_last_of("=\n", at);
  return text[at - 1] == '.' && (last == std::string_view::npos || text[last] == '\n');
}

bool foreign(char c) noexcept { return static_cast<unsigned char>(c) >= 0x80; }

// The end of the string that begins at `at` with `quote`: behind it, at the line's end if it does not end before, the
// text's end, or a letter beyond ASCII that a backslash stands before, blanks and line ends between or not.
std::size_t behind_string(std::string_view text, std::size_t at) noexcept {
  const char quote = text[at];
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool lines = text.substr(at, 3) == three;
  for (at += lines ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
      if (next != std::string_view::npos && foreign(text[next])) return next;
      ++at;
    } else if (text[at] == '\n' && !lines) {
      return at;
    } else if (text[at] == quote && (!lines || text.substr(at, 3) == three)) {
      return at + (lines ? 3 : 1);
    }
  }
  return text.size();
}

}  // namespace

std::size_t stray_letter_line(std::string_view text) noexcept {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);  // a byte order mark is allowed there
  std::size_t line = 1, counted = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if ((c == '"' || c == '\'') && begins_string(text, at)) {
      at = behind_string(text, at);
    } else if (foreign(c)) {
      for (; counted < at; ++counted) line += text[counted] == '\n';
      return line;
    } else {
      ++at;
    }
  }
  return 0;
}

}  // namespace leat::planner
