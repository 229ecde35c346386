#include "planner/mig/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace leat::planner {
namespace {

constexpr double kTiny = 1e-9;

struct Placer {
  const MigGeometry& geometry;
  const std::vector<std::uint32_t>& profiles;
  std::vector<MigPlacement> placed{};
  std::uint64_t taken = 0;
  std::uint32_t compute = 0;

  // Calls visit(counts) for every valid set of instances; size by size, start by start, so that each set comes once.
  template <class Visit>
  void all(std::size_t size, std::size_t start_index, SizeCounts& counts, const Visit& visit) {
    visit(counts);
    for (std::size_t k = size; k < profiles.size(); ++k) {
      const MigProfile& p = geometry.profiles[profiles[k]];
      if (counts[k] >= p.max || compute + p.compute > geometry.compute_slices) continue;
      for (std::size_t s = k == size ? start_index : 0; s < p.starts.size(); ++s) {
        const std::uint64_t slices = ((1ull << p.memory) - 1) << p.starts[s];
        if ((taken & slices) != 0) continue;
        taken |= slices;
        compute += p.compute;
        ++counts[k];
        placed.push_back({profiles[k], p.starts[s]});
        all(k, s + 1, counts, visit);
        placed.pop_back();
        --counts[k];
        compute -= p.compute;
        taken &= ~slices;
      }
    }
  }
};

bool covers(const SizeCounts& a, const SizeCounts& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k] < b[k]) return false;
  return true;
}

std::vector<double> as_real(const SizeCounts& counts) { return {counts.begin(), counts.end()}; }

bool serves_every_class(const SizeDemand& demand, const SizeCounts& counts) {
  for (std::size_t b = 0; b < demand.batch_share.size(); ++b) {
    bool fits = demand.batch_share[b] <= 0;
    for (std::size_t k = 0; k < counts.size() && !fits; ++k)
      fits = counts[k] > 0 && demand.latency_s[k][b] <= demand.sla_s;
    if (!fits) return false;
  }
  return true;
}

}  // namespace

std::vector<SizeCounts> maximal_layouts(const MigGeometry& geometry, const std::vector<std::uint32_t>& profiles) {
  std::set<SizeCounts> found;
  Placer placer{geometry, profiles};
  SizeCounts counts(profiles.size());
  placer.all(0, 0, counts, [&](const SizeCounts& c) { found.insert(c); });
  std::vector<SizeCounts> out;
  for (const SizeCounts& c : found)
    if (std::none_of(found.begin(), found.end(), [&](const SizeCounts& o) { return o != c && covers(o, c); }))
      out.push_back(c);
  return out;
}

std::vector<std::vector<MigPlacement>> placements_of(const MigGeometry& geometry,
                                                     const std::vector<std::uint32_t>& profiles,
                                                     const SizeCounts& wanted) {
  std::vector<std::vector<MigPlacement>> out;
  Placer placer{geometry, profiles};
  SizeCounts counts(profiles.size());
  placer.all(0, 0, counts, [&](const SizeCounts& c) {
    if (c == wanted) out.push_back(placer.placed);
  });
  return out;
}

LayoutSpace::LayoutSpace(const MigGeometry& geometry, std::vector<std::uint32_t> profiles, std::uint32_t gpus)
    : geometry_(geometry),
      profiles_(std::move(profiles)),
      gpus_(gpus),
      layouts_(maximal_layouts(geometry_, profiles_)) {
  levels_.push_back({{SizeCounts(profiles_.size()), 0, 0}});
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    std::map<SizeCounts, Total> next;
    for (std::uint32_t i = 0; i < levels_.back().size(); ++i)
      for (std::uint32_t l = 0; l < layouts_.size(); ++l) {
        SizeCounts counts = levels_.back()[i].counts;
        for (std::size_t k = 0; k < counts.size(); ++k) counts[k] += layouts_[l][k];
        next.try_emplace(counts, Total{counts, i, l});
      }
    levels_.emplace_back();
    for (auto& [counts, total] : next) levels_.back().push_back(std::move(total));
  }
  for (const Total& t : levels_.back()) totals_.push_back(t.counts);
}

std::vector<double> LayoutSpace::compute_of_sizes() const {
  std::vector<double> out;
  for (std::uint32_t p : profiles_) out.push_back(geometry_.profiles[p].compute);
  return out;
}

LayoutChoice LayoutSpace::choice_of(std::size_t total, const SizeDemand& demand) const {
  std::vector<std::uint32_t> layouts(gpus_);
  for (std::size_t g = gpus_, i = total; g > 0; --g) {
    layouts[g - 1] = levels_[g][i].layout;
    i = levels_[g][i].parent;
  }
  return choice_of(std::move(layouts), demand);
}

LayoutChoice LayoutSpace::choice_of(std::vector<std::uint32_t> layouts, const SizeDemand& demand) const {
  LayoutChoice out;
  out.counts.assign(profiles_.size(), 0);
  for (std::uint32_t l : layouts)
    for (std::size_t k = 0; k < out.counts.size(); ++k) out.counts[k] += layouts_[l][k];
  out.layouts = std::move(layouts);
  out.served_rps = served_load(demand, as_real(out.counts)).rate_rps;
  return out;
}

LayoutChoice LayoutSpace::best_layout(const SizeDemand& demand) const {
  std::vector<double> upper(totals_.size(), std::numeric_limits<double>::infinity());
  double best = -1;
  std::size_t where = 0;
  for (;;) {
    const auto at = static_cast<std::size_t>(std::max_element(upper.begin(), upper.end()) - upper.begin());
    if (upper[at] <= best * (1 + kTiny) || upper[at] <= 0) break;
    const ServedLoad load = served_load(demand, as_real(totals_[at]));
    if (load.rate_rps > best) {
      best = load.rate_rps;
      where = at;
    }
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < profiles_.size(); ++k) sum += totals_[i][k] * load.price[k];
      upper[i] = std::min(upper[i], sum);
    }
    upper[at] = std::min(upper[at], load.rate_rps);  // solved: never again
  }
  LayoutChoice out = choice_of(where, demand);
  out.bound_rps = std::max(out.served_rps, *std::max_element(upper.begin(), upper.end()));
  return out;
}

LayoutChoice LayoutSpace::nearest_layout(const std::vector<double>& instances, const SizeDemand& demand) const {
  const std::vector<double> compute = compute_of_sizes();
  std::size_t best = 0;
  double best_off = std::numeric_limits<double>::infinity(), best_used = 0;
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    if (!serves_every_class(demand, totals_[i])) continue;
    double off = 0, used = 0;
    for (std::size_t k = 0; k < compute.size(); ++k) {
      off += compute[k] * std::abs(totals_[i][k] - instances[k]);
      used += compute[k] * totals_[i][k];
    }
    if (off < best_off - kTiny || (off < best_off + kTiny && used > best_used + kTiny)) {
      best = i;
      best_off = off;
      best_used = used;
    }
  }
  return choice_of(best, demand);
}

}  // namespace leat::planner
