#include "tools/leat/top/facts/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace leat::tools::top {
namespace {

std::string formatted(const char* how, double value, const char* behind = "") {
  char text[40];
  std::snprintf(text, sizeof text, how, value);
  return text + std::string(behind);
}

// Digits behind the point so that three are shown.
std::string three_digits(double value, const char* behind) {
  if (value < 9.995) return formatted("%.2f", value, behind);
  if (value < 99.95) return formatted("%.1f", value, behind);
  return formatted("%.0f", value, behind);
}

struct Numbered {
  std::string stem;
  long number = -1;  // none
};
Numbered numbered(const std::string& name) {
  std::size_t at = name.size();
  while (at > 0 && std::isdigit(static_cast<unsigned char>(name[at - 1])) != 0) --at;
  if (at == name.size() || name.size() - at > 9) return {name, -1};
  if (name[at] == '0' && name.size() - at > 1) return {name, -1};  // "cam01": its zero would be lost
  return {name.substr(0, at), std::stol(name.substr(at))};
}

}  // namespace

std::string three(double value) {
  if (std::isnan(value)) return "-";
  if (value < 0) return "-" + three(-value);
  if (value == 0) return "0";
  if (value < 0.005) return "<0.01";
  if (value < 999.5) return three_digits(value, "");
  if (value < 999.5e3) return three_digits(value / 1e3, "k");
  if (value < 999.5e6) return three_digits(value / 1e6, "M");
  return three_digits(std::min(value / 1e9, 999.0), "G");
}

std::string whole(double value) {
  if (std::isnan(value)) return "-";
  return value < 999.5 ? formatted("%.0f", value) : three(value);
}

std::string percent(double value) {
  if (std::isnan(value)) return "-";
  if (value <= 0) return "0";
  if (value < 1) return "<1";
  if (value > 99 && value < 100) return ">99";
  return formatted("%.0f", value);
}

std::string share(double value) {
  if (std::isnan(value)) return "-";
  if (value <= 0) return "0";
  if (value < 0.01) return "<0.01";
  if (value > 99.9 && value < 100) return ">99";
  return value >= 100 ? "100" : three_digits(value, "");
}

std::string two(double value) {
  if (std::isnan(value)) return "-";
  if (value <= 0) return "0";
  if (value < 9.5) return value == std::floor(value) ? formatted("%.0f", value) : formatted("%.1f", value);
  const double step = std::pow(10, std::floor(std::log10(value)) - 1);
  return formatted("%.0f", std::round(value / step) * step);
}

std::string span_of(std::int64_t ns, bool fine) {
  const double s = static_cast<double>(std::max<std::int64_t>(ns, 0)) / 1e9;
  if (fine && s < 9.95) return formatted("%.1f s", s);
  const auto seconds = static_cast<long long>(s);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
  return std::to_string(seconds / 86400) + " d " + std::to_string(seconds / 3600 % 24) + " h";
}

std::string clock_of(std::int64_t wall_ns, std::int64_t utc_offset_s) {
  const std::int64_t seconds = wall_ns / 1'000'000'000 + utc_offset_s, day = 86400;
  const auto of_day = static_cast<int>((seconds % day + day) % day);
  char text[40];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", of_day / 3600, of_day / 60 % 60, of_day % 60);
  return text;
}

std::string names_together(std::vector<std::string> names, std::size_t longest) {
  std::sort(names.begin(), names.end(), natural_less);
  std::string out, last_stem;
  for (std::size_t i = 0; i < names.size();) {
    const Numbered first = numbered(names[i]);
    std::size_t end = i + 1;
    if (first.number >= 0)
      while (end < names.size()) {
        const Numbered next = numbered(names[end]);
        if (next.stem != first.stem || next.number != first.number + static_cast<long>(end - i)) break;
        ++end;
      }
    const std::string stem = first.stem == last_stem && first.number >= 0 ? "" : first.stem;
    std::string part = first.number < 0 ? names[i] : stem + std::to_string(first.number);
    if (end - i == 2) part += ", " + stem + std::to_string(first.number + 1);
    if (end - i > 2) part += "-" + std::to_string(first.number + static_cast<long>(end - i) - 1);
    if (!out.empty() && out.size() + part.size() + 6 > longest) return out + ", ...";
    out += (out.empty() ? "" : ", ") + part;
    last_stem = first.number >= 0 ? first.stem : "";
    i = end;
  }
  return out;
}

bool natural_less(std::string_view a, std::string_view b) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (digit(a[i]) && digit(b[k])) {
      std::size_t i_end = i, k_end = k;
      while (i < a.size() && a[i] == '0') ++i;
      while (k < b.size() && b[k] == '0') ++k;
      for (i_end = i; i_end < a.size() && digit(a[i_end]);) ++i_end;
      for (k_end = k; k_end < b.size() && digit(b[k_end]);) ++k_end;
      if (i_end - i != k_end - k) return i_end - i < k_end - k;
      const int order = a.substr(i, i_end - i).compare(b.substr(k, k_end - k));
      if (order != 0) return order < 0;
      i = i_end;
      k = k_end;
      continue;
    }
    if (a[i] != b[k]) return a[i] < b[k];
    ++i;
    ++k;
  }
  if ((a.size() - i) != (b.size() - k)) return a.size() - i < b.size() - k;
  return a < b;  // "01" and "1"
}

char32_t next_letter(std::string_view text, std::size_t* at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t i = (*at)++;
  const unsigned first = byte(i);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? (first < 0xf0 ? 2 : 0) : first >= 0xc2 ? 1 : 0;
  if (more == 0 || i + static_cast<std::size_t>(more) >= text.size()) return 0xfffd;
  char32_t letter = first & (0x3fu >> more);
  for (int n = 1; n <= more; ++n) {
    const unsigned next = byte(i + static_cast<std::size_t>(n));
    if ((next & 0xc0u) != 0x80u) return 0xfffd;
    letter = letter << 6 | (next & 0x3fu);
  }
  const bool too_long = (more == 2 && letter < 0x800) || (more == 3 && (letter < 0x10000 || letter > 0x10ffff));
  if (too_long || (letter >= 0xd800 && letter < 0xe000)) return 0xfffd;
  *at = i + 1 + static_cast<std::size_t>(more);
  return letter;
}

int columns_of(char32_t c) noexcept {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return 0;
  if (c < 0x300) return c == 0xad ? 0 : 1;
  struct Range {
    char32_t from, to;
    int columns;
  };
  // What has no column of its own, turns the direction of writing, or may be one or two wide, is left out.
  static constexpr Range kRanges[] = {
      {0x300, 0x36f, 0},   {0x483, 0x489, 0},   {0x590, 0x8ff, 0},     {0x900, 0x10ff, 0},     {0x1100, 0x115f, 2},
      {0x1160, 0x11ff, 0}, {0x1200, 0x1dff, 0}, {0x200b, 0x200f, 0},   {0x2028, 0x202f, 0},    {0x205f, 0x206f, 0},
      {0x20d0, 0x20ff, 0}, {0x2e80, 0x303e, 2}, {0x3041, 0x3098, 2},   {0x3099, 0x309a, 0},    {0x309b, 0xa4cf, 2},
      {0xa4d0, 0xabff, 0}, {0xac00, 0xd7a3, 2}, {0xd7a4, 0xf8ff, 0},   {0xf900, 0xfaff, 2},    {0xfb00, 0xff00, 0},
      {0xff01, 0xff60, 2}, {0xff61, 0xffff, 0}, {0x10000, 0x1f2ff, 0}, {0x1f300, 0x10ffff, 0},
  };
  for (const Range& r : kRanges)
    if (c >= r.from && c <= r.to) return r.columns;
  return 1;
}

std::string printable(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t from = at;
    const char32_t letter = next_letter(name, &at);
    if (letter == 0xfffd || columns_of(letter) == 0)
      out += '?';
    else
      out += name.substr(from, at - from);
  }
  return out;
}

}  // namespace leat::tools::top
