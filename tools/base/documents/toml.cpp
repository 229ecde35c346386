#include "tools/base/documents/toml.h"

#include <algorithm>
#include <vector>

namespace leat {
namespace {

constexpr char32_t kFirst = 0xA0, kLast = 0xFEFF;  // what the library's table does not answer for lies between these
constexpr char32_t kPlane = 0xF0000;

void append_utf8(std::string& out, char32_t letter) {
  const auto byte = [&](char32_t lead, int shift, char32_t mask) {
    out += static_cast<char>(lead | ((letter >> shift) & mask));
  };
  if (letter < 0x80) return byte(0, 0, 0x7F);
  if (letter < 0x800) {
    byte(0xC0, 6, 0x1F);
  } else if (letter < 0x10000) {
    byte(0xE0, 12, 0x0F);
    byte(0x80, 6, 0x3F);
  } else {
    byte(0xF0, 18, 0x07);
    byte(0x80, 12, 0x3F);
    byte(0x80, 6, 0x3F);
  }
  byte(0x80, 0, 0x3F);
}

// The letter that begins at text[at], and its length in bytes; length 0: not UTF-8.
struct Letter {
  char32_t value = 0;
  std::size_t length = 0;
};
Letter letter_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return {};
  char32_t value = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || value > 0x10FFFF || surrogate) return {};
  return {value, length};
}

bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// With the letters of [kFirst, kLast] moved into plane 15, or why that cannot be.
ParsedToml moved(std::string_view text, std::string& out) {
  ParsedToml result;
  result.line = result.column = 1;
  out.reserve(text.size() + text.size() / 4);
  for (std::size_t at = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0; at < text.size();) {
    const Letter letter = letter_at(text, at);
    if (letter.length == 0) {
      result.error = "is not UTF-8 here; save the file as UTF-8";
      return result;
    }
    if (letter.value >= kPlane && letter.value <= kPlane + 0xFFFF) {
      result.error = "a letter of private use (U+F0000 to U+FFFFF) has no meaning here; remove it";
      return result;
    }
    append_utf8(out, letter.value >= kFirst && letter.value <= kLast ? letter.value + kPlane : letter.value);
    at += letter.length;
    ++result.column;
    if (letter.value == '\n') {
      ++result.line;
      result.column = 1;
    }
  }
  return {};
}

std::string moved_back(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Letter letter = letter_at(text, at);
    if (letter.length == 0) {
      out += text[at++];  // a message of the library's that was cut
      continue;
    }
    const bool ours = letter.value >= kPlane + kFirst && letter.value <= kPlane + kLast;
    append_utf8(out, ours ? letter.value - kPlane : letter.value);
    at += letter.length;
  }
  return out;
}

void move_back(toml::node& node) {
  if (auto* text = node.as_string()) {
    if (!ascii(text->get())) *text = moved_back(text->get());
  } else if (auto* list = node.as_array()) {
    for (auto& item : *list) move_back(item);
  } else if (auto* table = node.as_table()) {
    std::vector<toml::key> foreign;
    for (auto& [key, value] : *table) {
      move_back(value);
      if (!ascii(key.str())) foreign.push_back(key);
    }
    for (const toml::key& key : foreign) {  // what they are moved to stands for no other key: both ways are one to one
      const toml::key own(moved_back(key.str()), key.source());
      table->get(key.str())->visit([&](auto& typed) { table->insert(own, std::move(typed)); });
      table->erase(key.str());
    }
  }
}

}  // namespace

ParsedToml parse_toml(std::string_view text) {
  std::string safe;
  if (ParsedToml refused = moved(text, safe); !refused.error.empty()) return refused;
  toml::parse_result parsed = toml::parse(safe);
  ParsedToml result;
  if (parsed) {
    result.root = std::move(parsed).table();
    move_back(result.root);
    return result;
  }
  const toml::parse_error& e = parsed.error();
  result.error = moved_back(e.description());
  std::replace(result.error.begin(), result.error.end(), '\n', ' ');
  result.line = e.source().begin.line;
  result.column = e.source().begin.column;
  return result;
}

}  // namespace leat
