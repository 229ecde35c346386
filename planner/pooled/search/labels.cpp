// The labels of a DNN's slots: the uses of a slot that waste no more than is left, those that another beats left out.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "planner/pooled/search/search.h"

namespace leat::planner {
namespace {

constexpr std::size_t kLookBack = 64;
constexpr double kNearGpus = 3;

}  // namespace

// The rates one candidate of the slot can take. Where the slot holds several pipelines they reach its least together.
std::vector<PooledLp::Range> PooledSearch::candidate_ranges(std::uint32_t dnn, std::uint32_t slot, double limit) const {
  const Slot& s = slots_[dnn][slot];
  std::vector<PooledLp::Range> out;
  std::vector<double> max;
  for (const Candidate& c : s.candidates) {
    double cost = 0;  // price of one request per second
    for (std::uint32_t k = 0; k < c.stages; ++k) cost += lp_.gpu_price()[s.types[k]] / c.gpu_rps(k);
    const double excess = cost - lp_.rps_price()[dnn];
    out.push_back({ranges_[slot].min, excess * ranges_[slot].max > limit ? limit / excess : ranges_[slot].max});
    max.push_back(out.back().max);
  }
  if (s.copies == 1) return out;
  std::sort(max.begin(), max.end(), std::greater<>());
  max.resize(s.copies, 0);
  const double all = std::accumulate(max.begin(), max.end(), 0.0);
  for (PooledLp::Range& r : out) r.min = std::max(0.0, r.min - (all - (r.max >= max.back() ? r.max : max.back())));
  return out;
}

// False: the steps are spent.
bool PooledSearch::add_labels(std::uint32_t dnn, std::uint32_t slot, double limit, std::vector<Label>& out) {
  const auto ceil_safe = [](double x) { return std::ceil(x * (1 - kRound)); };
  const Slot& s = slots_[dnn][slot];
  const double price = lp_.rps_price()[dnn];
  const auto ranges = candidate_ranges(dnn, slot, limit);
  for (std::uint32_t c = 0; c < s.candidates.size(); ++c) {
    const Candidate& candidate = s.candidates[c];
    double step[kMaxStages];  // rate of one count
    std::uint32_t units[kMaxStages];
    for (std::uint32_t k = 0; k < candidate.stages; ++k) {
      step[k] = unit_ == 1 ? candidate.gpu_rps(k) : candidate.stage[k].rps_per_vgpu;
      units[k] = unit_ == 1 ? 1 : unit_ / candidate.stage[k].share;
    }
    for (std::uint32_t full = 0; full < candidate.stages; ++full) {
      const double first = std::max(1.0, ceil_safe(ranges[c].min / step[full])),
                   last = ceil_safe(ranges[c].max / step[full]);
      if (last >= first && !spend(static_cast<std::uint64_t>(last - first) + 1)) return false;
      for (double n = first; n <= last; ++n) {
        Label label;
        label.candidate = c;
        label.rps = n * step[full];
        double gpu_price = 0;
        for (std::uint32_t k = 0; k < candidate.stages; ++k) {
          label.count[k] = static_cast<std::uint32_t>(k == full ? n : ceil_safe(label.rps / step[k]));
          label.use[k] = label.count[k] * units[k];
          gpu_price += lp_.gpu_price()[s.types[k]] * label.use[k];
        }
        label.waste = gpu_price / unit_ - price * label.rps;
        if (label.waste <= limit) out.push_back(label);
      }
    }
  }
  return true;
}

// Narrows each slot's range to the relaxation's own rate there, give or take what a few GPUs carry.
void PooledSearch::stay_near(std::uint32_t dnn, double rate) {
  std::vector<double> centre(ranges_.size(), 0);
  double all = 0;
  for (const LpColumn& c : lp_.columns()[dnn]) centre[c.slot] += c.rps, all += c.rps;
  for (std::uint32_t s = 0; s < ranges_.size(); ++s) {
    double gpu = 0;
    for (const Candidate& c : slots_[dnn][s].candidates) gpu = std::max(gpu, c.gpu_rps(0));
    const double middle = centre[s] * rate / all;
    ranges_[s].min = std::max(ranges_[s].min, middle - kNearGpus * gpu);
    ranges_[s].max = std::min(ranges_[s].max, middle + kNearGpus * gpu);
    if (reach_ == Reach::same_slots && centre[s] <= 0) ranges_[s] = {0, 0};
  }
}

bool PooledSearch::make_labels(std::uint32_t dnn, double limit) {
  labels_.assign(slots_[dnn].size(), {});
  for (std::uint32_t slot = 0; slot < labels_.size(); ++slot) {
    std::vector<Label> all;
    if (ranges_[slot].max <= 0) continue;
    if (!add_labels(dnn, slot, limit, all)) return false;
    // Leave out what a label of at least its rate beats at every stage. Looking at the nearest rates finds most of
    // them.
    std::sort(all.begin(), all.end(), [](const Label& a, const Label& b) {
      if (a.rps != b.rps) return a.rps > b.rps;
      return std::lexicographical_compare(a.use, a.use + kMaxStages, b.use, b.use + kMaxStages);
    });
    std::vector<Label>& kept = labels_[slot];
    for (const Label& l : all) {
      const auto end = kept.rbegin() + static_cast<std::ptrdiff_t>(std::min(kept.size(), kLookBack));
      const bool beaten = std::any_of(kept.rbegin(), end, [&](const Label& k) {
        for (std::uint32_t s = 0; s < kMaxStages; ++s) {
          if (k.use[s] > l.use[s]) return false;
        }
        return true;
      });
      if (!beaten) kept.push_back(l);
    }
    std::reverse(kept.begin(), kept.end());
  }
  return true;
}

}  // namespace leat::planner
