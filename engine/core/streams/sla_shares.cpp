#include "engine/core/streams/sla_shares.h"

#include <cmath>
#include <limits>

namespace leat::core::streams {

std::array<double, kGroupTasks> share_sla(std::span<const SlaPart> parts, double budget) noexcept {
  const auto root = [](const SlaPart& p) { return std::sqrt(p.weight * p.slope * p.cost); };
  std::uint32_t best = 0;
  double min = std::numeric_limits<double>::infinity(), best_left = budget, best_roots = 0;
  for (std::uint32_t local = 0; local < 1u << parts.size(); ++local) {
    double left = budget, roots = 0;
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      if ((local >> i & 1) != 0)
        left -= parts[i].weight * parts[i].local;
      else
        roots += root(parts[i]);
    }
    if (left < 0 || (left == 0 && roots > 0)) continue;
    const double cost = roots > 0 ? roots * roots / left : 0;
    if (cost >= min) continue;
    min = cost;
    best = local;
    best_left = left;
    best_roots = roots;
  }
  std::array<double, kGroupTasks> out{};
  for (std::uint32_t i = 0; i < parts.size(); ++i)
    out[i] = (best >> i & 1) != 0 ? 1 : best_left * root(parts[i]) / best_roots / parts[i].weight;
  return out;
}

}  // namespace leat::core::streams
