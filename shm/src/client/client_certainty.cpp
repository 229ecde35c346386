// Rules of what a tracker expects to have lost, read from files: lines of a word and its value, '#' before what is for
// people.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <string_view>

#include "leat/certainty.h"
#include "leat/certainty.hpp"
#include "shm/src/client/client_errors.h"

using namespace leat::shm;

namespace {

constexpr std::string_view kHead = "leat-certainty 1";
constexpr std::size_t kMostBytes = 65'536;
constexpr float kMostWeight = 1e4f;

// Of a line "word value"; false: it is neither known nor sound, or comes twice.
struct CertaintyReader {
  leat_certainty& out;
  bool tracker = false, asks = false;
  std::array<bool, leat::kCertaintyTerms> weights{};

  bool take(std::string_view word, std::string_view value) {
    if (word == "tracker") {
      if (tracker || value.empty() || value.size() >= sizeof out.tracker) return false;
      std::memcpy(out.tracker, value.data(), value.size());
      return tracker = true;
    }
    if (word == "asks") {
      if (asks || (value != "yes" && value != "no")) return false;
      out.asks = value == "yes" ? 1 : 0;
      return asks = true;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (word != leat::kCertaintyTermNames[i]) continue;
      float& to = out.weight[i];
      const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), to);
      if (weights[i] || problem != std::errc() || end != value.data() + value.size() || !(std::abs(to) <= kMostWeight))
        return false;
      return weights[i] = true;
    }
    return false;
  }
  // The first word that is not there; empty: all are.
  [[nodiscard]] std::string_view lacks() const {
    if (!tracker) return "tracker";
    if (!asks) return "asks";
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (!weights[i]) return leat::kCertaintyTermNames[i];
    return {};
  }
};

leat_error unfit(const char* path, const std::string& what) {
  return fail(LEAT_ERROR_invalid_argument,
              std::string(path) + ": " + what + "; 'leat certainty --out' makes such files");
}

}  // namespace

leat_error leat_read_certainty(const char* path, leat_certainty* out) try {
  if (path == nullptr || out == nullptr) return fail(LEAT_ERROR_invalid_argument, "leat_read_certainty: NULL given");
  *out = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return unfit(path, "cannot be read");
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes) return unfit(path, "is too large for a rule of a tracker");
  CertaintyReader reader{*out};
  std::string_view left = text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    const std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (number == 1) {
      if (line != kHead)
        return unfit(path, "is no rule of a tracker, its first line is not '" + std::string(kHead) + "'");
      continue;
    }
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    if (!reader.take(line.substr(0, space), line.substr(std::min(space + 1, line.size()))))
      return unfit(path, "line " + std::to_string(number) + " is not what a rule of a tracker has there");
  }
  if (const std::string_view lacking = reader.lacks(); !lacking.empty())
    return unfit(path, "has no line '" + std::string(lacking) + "'");
  return LEAT_ERROR_ok;
} catch (const std::bad_alloc&) {
  return fail(LEAT_ERROR_no_memory, "no memory for a rule of a tracker");
}

double leat_certainty_expected(const leat_certainty* rule, const float* terms) {
  if (rule == nullptr || terms == nullptr) return -1;
  leat::CertaintyRule of;
  leat::CertaintyTerms by;
  std::memcpy(of.weight.data(), rule->weight, sizeof rule->weight);
  std::memcpy(by.data(), terms, sizeof by);
  of.asks = rule->asks != 0;
  return of.expected(by);
}
