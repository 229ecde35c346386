#include "engine/exec/recognise/norm.h"

#include <algorithm>

namespace leat::exec {
namespace {

// Where a channel's value is 0, in the unit of the picture.
double zero_of(const GraphNorm& norm, std::size_t c) { return -norm.shift[c] / norm.scale[c]; }

bool all(const GraphNorm& norm, double scale_min, double scale_max, double zero_min, double zero_max) {
  for (std::size_t c = 0; c < norm.scale.size(); ++c) {
    const double k = norm.scale[c], zero = k != 0 ? zero_of(norm, c) : -1;
    if (!(k >= scale_min && k <= scale_max && zero >= zero_min && zero <= zero_max)) return false;
  }
  return true;
}

// Photographs have more red than blue: published means fall from red to blue.
std::string order_of(const GraphNorm& norm, double min_gap) {
  if (norm.scale.size() < 3) return {};
  const double first = zero_of(norm, 0), middle = zero_of(norm, 1), last = zero_of(norm, 2);
  if (first > middle && middle > last && first - last >= min_gap) return "rgb";
  if (first < middle && middle < last && last - first >= min_gap) return "bgr";
  return {};
}

}  // namespace

std::string range_wanted(const GraphNorm& norm) {
  if (norm.none()) return {};
  // Means about the middle, deviations of an eighth of the range to all of it, or none; a plain / 255.
  if (all(norm, 1.0 / 256, 8.0 / 255, -0.01, 0.01) && !norm.learned) return "raw";
  if (all(norm, 1.0 / 256, 8.0 / 255, 80, 160) || (all(norm, 1, 1, 80, 160) && !norm.learned)) return "raw";
  if (!norm.learned && all(norm, 0.9, 8, 0.3, 0.7)) return "unit";
  return {};
}

std::string beside_graph(const std::string& words, const GraphNorm& norm) {
  const std::string range = range_wanted(norm);
  // Alpha is not normalised as colours are: who writes rgba has said what it becomes.
  if (range.empty() || words.empty() || words.find("rgba") != std::string::npos) return words;
  const std::string order = order_of(norm, range == "raw" ? 5 : 0.02);
  std::string out;
  bool said = false;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    std::string word = words.substr(at, end - at);
    at = end + 1;
    if (word.starts_with("mean=") || word.starts_with("std=") || word.starts_with("norm=")) {
      if (said) continue;
      word = "norm=" + range, said = true;
    } else if ((word == "rgb" || word == "bgr") && !order.empty()) {
      word = order;
    }
    out += (out.empty() ? "" : " ") + word;
  }
  return said ? out : out + " norm=" + range;
}

}  // namespace leat::exec
