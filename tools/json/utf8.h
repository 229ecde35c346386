// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace leat {

// Bytes of the character that `text` begins with; 0: that is none (cut off, longer than need be, a half of a pair of
// UTF-16, or beyond U+10FFFF).
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  unsigned code = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool sound =
      first >= 0xc0 && first < 0xf8 && code >= kLeast[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return sound ? length : 0;
}

// Appends a character; precondition: it is one.
template <class String>
void append_utf8(String& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const unsigned length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  out += static_cast<char>((0xf00U >> length & 0xffU) | code >> (6 * (length - 1)));
  for (unsigned i = length - 1; i > 0; --i) out += static_cast<char>(0x80U | (code >> (6 * (i - 1)) & 0x3f));
}

}  // namespace leat
