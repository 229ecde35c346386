#include "bench/gpu/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace leat::probe {
namespace {

double interpolated(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double nearest_rank(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

std::optional<Summary> summarise(std::vector<double> samples) {
  if (samples.empty()) return std::nullopt;
  if (!std::all_of(samples.begin(), samples.end(), [](double v) { return std::isfinite(v); })) std::abort();
  std::sort(samples.begin(), samples.end());
  return Summary{.count = samples.size(),
                 .min = samples.front(),
                 .p25 = interpolated(samples, 0.25),
                 .median = interpolated(samples, 0.5),
                 .p75 = interpolated(samples, 0.75),
                 .p99 = nearest_rank(samples, 0.99),
                 .max = samples.back()};
}

}  // namespace leat::probe
