#include "planner/papers/layouts.h"

#include <algorithm>
#include <limits>
#include <set>

namespace leat::planner {
namespace {

constexpr double kTiny = 1e-9;

// Upper bounds on the served load from every linear program solved so far.
struct Cuts {
  std::vector<std::vector<double>> prices{};
  double bound(const SizeCounts& counts) const {
    double min = std::numeric_limits<double>::infinity();
    for (const auto& price : prices) {
      double sum = 0;
      for (std::size_t k = 0; k < counts.size(); ++k) sum += counts[k] * price[k];
      min = std::min(min, sum);
    }
    return min;
  }
};

ServedLoad load_of(const SizeDemand& demand, const SizeCounts& counts) {
  return served_load(demand, {counts.begin(), counts.end()});
}

}  // namespace

LayoutChoice refined_layout(const LayoutSpace& space, LayoutChoice now, const SizeDemand& demand) {
  Cuts cuts;
  cuts.prices.push_back(load_of(demand, now.counts).price);
  for (;;) {
    double best = now.served_rps * (1 + kTiny);
    std::size_t where = space.gpus();
    std::uint32_t to = 0;
    std::set<std::uint32_t> tried;  // GPUs with the same layout are alike
    for (std::size_t g = 0; g < space.gpus(); ++g) {
      if (!tried.insert(now.layouts[g]).second) continue;
      for (std::uint32_t l = 0; l < space.layouts().size(); ++l) {
        if (l == now.layouts[g]) continue;
        SizeCounts counts = now.counts;
        for (std::size_t k = 0; k < counts.size(); ++k)
          counts[k] += space.layouts()[l][k] - space.layouts()[now.layouts[g]][k];
        if (cuts.bound(counts) <= best) continue;
        const ServedLoad load = load_of(demand, counts);
        cuts.prices.push_back(load.price);
        if (load.rate_rps <= best) continue;
        best = load.rate_rps;
        where = g;
        to = l;
      }
    }
    if (where == space.gpus()) return now;
    std::vector<std::uint32_t> layouts = now.layouts;
    layouts[where] = to;
    now = space.choice_of(std::move(layouts), demand);
  }
}

LayoutChoice homogeneous_layout(const LayoutSpace& space, std::uint32_t size, const SizeDemand& demand) {
  const std::vector<std::uint32_t>& profiles = space.profiles();
  SizeCounts one(profiles.size());
  while (!placements_of(space.geometry(), {profiles[size]}, {one[size] + 1}).empty()) ++one[size];
  LayoutChoice out;
  out.counts.assign(profiles.size(), 0);
  out.counts[size] = one[size] * space.gpus();
  out.served_rps = load_of(demand, out.counts).rate_rps;
  return out;
}

}  // namespace leat::planner
