#include "engine/exec/spec_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace leat::exec {
namespace {

bool parse(std::string_view text, float* out) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, *out);
  if (error != std::errc() || !std::isfinite(*out)) return false;
  if (end == last || *end != '/') return end == last;
  float below = 0;  // a fraction: 114/255
  const auto [behind, fault] = std::from_chars(end + 1, last, below);
  if (fault != std::errc() || behind != last || below == 0) return false;
  *out /= below;
  return std::isfinite(*out);
}

std::string shown(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

}  // namespace

SpecLine::SpecLine(std::string_view what, std::string_view line) : what_(what) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t from = line.find_first_not_of(" \t\n", at);
    if (from == std::string_view::npos) break;
    const std::size_t to = std::min(line.find_first_of(" \t\n", from), line.size());
    words_.emplace_back(line.substr(from, to - from));
    at = to;
  }
}

void SpecLine::renamed(std::string_view old, std::string_view now) {
  const std::string start = std::string(old) + "=";
  for (std::string& w : words_) {
    if (!w.starts_with(start)) continue;
    w = std::string(now) + "=" + w.substr(start.size());
    outdated_ = what_ + ": " + start + " is called " + std::string(now) + "= now; write '" + w +
                "', the old word goes with the next version";
  }
}

bool SpecLine::has(std::string_view key) const {
  const std::string start = std::string(key) + "=";
  return std::any_of(words_.begin(), words_.end(), [&](const std::string& w) { return w.starts_with(start); });
}

bool SpecLine::word(std::string_view name) {
  const auto found = std::find(words_.begin(), words_.end(), name);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

std::optional<std::string> SpecLine::text(std::string_view key) {
  const std::string start = std::string(key) + "=";
  const auto found =
      std::find_if(words_.begin(), words_.end(), [&](const std::string& w) { return w.starts_with(start); });
  if (found == words_.end()) return std::nullopt;
  std::string value = found->substr(start.size());
  words_.erase(found);
  return value;
}

std::vector<std::string> SpecLine::list(std::string_view key) {
  std::vector<std::string> out;
  const auto value = text(key);
  for (std::size_t at = 0; value && at <= value->size();) {
    const std::size_t comma = std::min(value->find(',', at), value->size());
    out.push_back(value->substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

void SpecLine::numbers(std::string_view key, float min, float max, std::span<float> out) {
  const auto value = text(key);
  if (!value) return;
  std::size_t count = 0;
  std::string_view rest = *value;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    float number = 0;
    if (count == out.size() || !parse(rest.substr(0, comma), &number) || number < min || number > max) {
      const std::string how_many =
          out.size() > 1 ? "one number, or " + std::to_string(out.size()) + " separated by commas, each" : "a number";
      fail(std::string(key) + "=" + *value + " is not " + how_many + " from " + shown(min) + " to " + shown(max));
      return;
    }
    out[count++] = number;
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (count == 1)
    std::fill(out.begin(), out.end(), out[0]);
  else if (count != out.size())
    fail(std::string(key) + "=" + *value + " has " + std::to_string(count) + " numbers; write 1 or " +
         std::to_string(out.size()));
}

void SpecLine::number(std::string_view key, float min, float max, float* out) { numbers(key, min, max, {out, 1}); }

void SpecLine::whole(std::string_view key, std::uint32_t min, std::uint32_t max, std::uint32_t* out) {
  float value = static_cast<float>(*out);
  number(key, static_cast<float>(min), static_cast<float>(max), &value);
  if (value != std::floor(value)) fail(std::string(key) + " must be a whole number");
  *out = static_cast<std::uint32_t>(value);
}

void SpecLine::choice(std::string_view key, std::initializer_list<std::string_view> known,
                      const std::function<void(std::size_t)>& set) {
  const auto value = text(key);
  if (!value) return;
  std::string list;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (*value == known.begin()[i]) return set(i);
    list += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + std::string(known.begin()[i]);
  }
  fail(std::string(key) + "=" + *value + " is not known; write " + list);
}

void SpecLine::size(std::string_view key, std::uint32_t* width, std::uint32_t* height) {
  const auto value = text(key);
  if (!value) return;
  const std::size_t x = value->find('x');
  float w = 0, h = 0;
  const std::string_view all = *value;
  const bool good = parse(all.substr(0, x), &w) && (x == std::string::npos || parse(all.substr(x + 1), &h));
  if (x == std::string::npos) h = w;
  if (!good || w < 1 || h < 1 || w > 16384 || h > 16384 || w != std::floor(w) || h != std::floor(h))
    return fail(std::string(key) + "=" + *value + " is not a size in pixels; write it like " + std::string(key) +
                "=640x640");
  *width = static_cast<std::uint32_t>(w), *height = static_cast<std::uint32_t>(h);
}

std::vector<std::pair<std::string, std::string>> SpecLine::starting(std::string_view prefix) {
  std::vector<std::pair<std::string, std::string>> out;
  std::erase_if(words_, [&](const std::string& w) {
    const std::size_t equals = w.find('=');
    if (!w.starts_with(prefix) || equals == std::string::npos || equals == prefix.size()) return false;
    out.emplace_back(w.substr(prefix.size(), equals - prefix.size()), w.substr(equals + 1));
    return true;
  });
  return out;
}

void SpecLine::fail(std::string text) {
  if (error_.empty()) error_ = std::move(text);
}

Status SpecLine::finish(std::string_view known) {
  if (!words_.empty()) fail("'" + words_.front() + "' is not known here or stands twice; known: " + std::string(known));
  if (!error_.empty()) return Error{what_ + ": " + error_};
  return Done{};
}

}  // namespace leat::exec
