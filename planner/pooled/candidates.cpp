#include "planner/pooled/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "planner/profile_table.h"

namespace leat::planner {
namespace {

double build_us(const PooledProblem& problem, const PooledDnn& dnn, std::uint32_t batch) {
  return dnn.est_rps > 0 ? problem.batch_build_factor * 1e6 * (batch - 1) / dnn.est_rps : 0;
}

// Microseconds one item needs between these types at cut c (0 and the last: input and result, free).
double item_us(const PooledProblem& problem, const Profile& profile, std::uint32_t cut, std::uint32_t from,
               std::uint32_t to) {
  const double gbps =
      problem.pair_gbps.empty() ? problem.bandwidth_gbps : problem.pair_gbps[from * problem.types.size() + to];
  if (gbps <= 0 || cut == 0 || cut == profile.blocks) return 0;
  return static_cast<double>(profile.boundary_bytes[cut - 1]) * 8 / (gbps * 1000);
}

// Requests per second that one of the vGPUs at an end of a cut may move through it: the v * h of a server share its
// card, the v of a device its link. `type` is the vGPU's, and from or to.
double link_cap(const PooledProblem& problem, const Profile& profile, std::uint32_t type, std::uint32_t share,
                std::uint32_t cut, std::uint32_t from, std::uint32_t to) {
  const double sharers = share * (problem.pair_gbps.empty() ? problem.types[type].gpus_per_server : 1);
  if (cut == 0 || cut == profile.blocks)  // the artifact's own constant for the open ends
    return problem.bandwidth_gbps > 0 && problem.pair_gbps.empty() ? 1e6 / sharers : 1e18;
  const double us = item_us(problem, profile, cut, from, to);
  return us > 0 ? 1e6 / us / sharers : 1e18;
}

// Leaves out every candidate that another one beats at each of its stages.
template <class AtLeast>
void keep_best(std::vector<Candidate>& all, AtLeast at_least) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.gpu_rps(0) != b.gpu_rps(0) ? a.gpu_rps(0) > b.gpu_rps(0) : a.gpu_rps(1) > b.gpu_rps(1);
  });
  std::vector<Candidate> kept;
  for (const Candidate& c : all) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Candidate& k) {
      for (std::uint32_t s = 0; s < k.stages; ++s) {
        if (!at_least(k, c, s)) return false;
      }
      return true;
    });
    if (!beaten) kept.push_back(c);
  }
  all = std::move(kept);
}

class Enumerator {
 public:
  Enumerator(const PooledProblem& problem, const PooledDnn& dnn, std::uint32_t largest_share)
      : problem_(problem), dnn_(dnn), profile_(*dnn.profile), table_(*dnn.profile), largest_share_(largest_share) {
    const auto types = static_cast<std::uint32_t>(problem.types.size());
    for (std::uint32_t from = 0; from < types; ++from) {
      types_.push_back(shares_of(from));
      for (std::uint32_t to = 0; to < types; ++to) {
        auto& us = item_us_.emplace_back();
        for (std::uint32_t cut = 0; cut <= profile_.blocks; ++cut)
          us.push_back(item_us(problem, profile_, cut, from, to));
      }
    }
  }

  std::vector<Slot> slots() {
    std::vector<Slot> out;
    const auto types = static_cast<std::uint32_t>(problem_.types.size());
    std::uint32_t leaves = 1;
    for (std::uint32_t s = 0; s < problem_.max_stages; ++s) leaves *= types;
    std::uint32_t count = 1;
    for (std::uint32_t stages = 1; stages <= problem_.max_stages; ++stages) {
      count *= types;
      for (std::uint32_t index = 0; index < count; ++index) {
        slot_ = Slot{stages, {}, leaves / count, {}};
        for (std::uint32_t s = stages, rest = index; s-- > 0; rest /= types) slot_.types[s] = rest % types;
        enumerate();
        prune();
        slot_.copies = std::min(slot_.copies, static_cast<std::uint32_t>(slot_.candidates.size()));
        if (!slot_.candidates.empty()) out.push_back(std::move(slot_));
      }
    }
    return out;
  }

  // Shortest way through the blocks: least[type][k], microseconds until the features behind block k are where a next
  // stage of this type begins, with s stages behind them; the end counts as every type.
  double min_latency_us() const {
    const std::uint32_t blocks = profile_.blocks;
    const auto types = static_cast<std::uint32_t>(types_.size());
    std::vector<std::vector<double>> min(types, std::vector<double>(blocks + 1, INFINITY));
    for (auto& of_type : min) of_type[0] = 0;
    double best = INFINITY;
    for (std::uint32_t s = 0; s < problem_.max_stages; ++s) {
      std::vector<std::vector<double>> next(types, std::vector<double>(blocks + 1, INFINITY));
      for (std::uint32_t t = 0; t < types; ++t) {
        std::vector<double> ended(blocks + 1, INFINITY);
        for (const Share& share : types_[t]) {
          const auto& tail = share.tail_us[0];
          for (std::uint32_t from = 0; from < blocks; ++from) {
            for (std::uint32_t to = from + 1; to <= blocks && fits(share, from, to); ++to)
              ended[to] = std::min(ended[to], min[t][from] + tail[to] - tail[from]);
          }
        }
        for (std::uint32_t u = 0; u < types; ++u)
          for (std::uint32_t k = 1; k <= blocks; ++k)
            next[u][k] = std::min(next[u][k], ended[k] + item_us_[t * types + u][k]);
      }
      min = std::move(next);
      best = std::min(best, min[0][blocks]);
    }
    return best;
  }

 private:
  struct Share {
    std::uint32_t share, largest_batch;
    std::vector<std::vector<double>> before_us;  // [batch - 1][block]: median latency of the blocks before
    std::vector<std::vector<double>> tail_us;    // the same for the budget
    std::int64_t memory_bytes;                   // 0: no limit
  };

  std::vector<Share> shares_of(std::uint32_t index) const {
    const GpuType& type = problem_.types[index];
    std::vector<Share> out;
    for (std::uint32_t v = 1; v <= std::min(type.max_share, largest_share_); ++v) {
      const std::uint32_t share = type.share_of(v);
      Share s{v, table_.largest_batch(type.name, share), {}, {}, type.memory_bytes / v};
      if (s.largest_batch == 0) continue;
      for (std::uint32_t b = 1; b <= s.largest_batch; ++b) {
        s.before_us.emplace_back();
        s.tail_us.emplace_back();
        for (std::uint32_t k = 0; k <= profile_.blocks; ++k) {
          const std::int64_t p50 = table_.p50_ns(type.name, share, b, 0, k);
          s.before_us.back().push_back(static_cast<double>(p50) / 1000);
          s.tail_us.back().push_back(
              static_cast<double>(problem_.budget_by_p99 ? table_.p99_ns(type.name, share, b, 0, k) : p50) / 1000);
        }
      }
      out.push_back(std::move(s));
    }
    return out;
  }

  void enumerate() {
    std::uint32_t max = 0;
    for (const Share& s : types_[slot_.types[0]]) max = std::max(max, s.largest_batch);
    for (std::uint32_t batch = 1; batch <= max; ++batch) {
      const double budget = dnn_.budget_us - build_us(problem_, dnn_, batch);
      if (budget <= 0) break;
      Candidate c;
      c.batch = batch;
      extend(c, 0, 0, budget);
    }
  }

  bool fits(const Share& share, std::uint32_t first, std::uint32_t end) const {
    const auto& bytes = profile_.block_memory_bytes;
    if (share.memory_bytes <= 0 || bytes.empty()) return true;
    return std::accumulate(bytes.begin() + first, bytes.begin() + end, std::int64_t{0}) <= share.memory_bytes;
  }

  // Appends every way to place blocks [first, M) on stages s, s+1, ... within `budget`.
  void extend(Candidate& c, std::uint32_t s, std::uint32_t first, double budget) {
    if (s == kMaxStages) return;
    const std::uint32_t type = slot_.types[s], before_it = s == 0 ? type : slot_.types[s - 1],
                        behind = s + 1 < std::min(slot_.stages, kMaxStages) ? slot_.types[s + 1] : type;
    const auto& item_us_behind = item_us_[type * types_.size() + behind];
    for (const Share& share : types_[slot_.types[s]]) {
      if (c.batch > share.largest_batch) continue;
      const auto& before = share.before_us[c.batch - 1];
      const auto& tail = share.tail_us[c.batch - 1];
      for (std::uint32_t end = first + 1; end <= profile_.blocks; ++end) {
        const double latency = before[end] - before[first];
        const double left = budget - (tail[end] - tail[first]) - c.batch * item_us_behind[end];
        if (budget < tail[end] - tail[first] || !fits(share, first, end)) break;
        if (left < 0 || (end == profile_.blocks) != (s + 1 == slot_.stages)) continue;
        c.stage[s] = {
            static_cast<std::uint16_t>(share.share), static_cast<std::uint16_t>(end),
            std::min({1e6 * c.batch / latency, link_cap(problem_, profile_, type, share.share, first, before_it, type),
                      link_cap(problem_, profile_, type, share.share, end, type, behind)})};
        if (end == profile_.blocks) {
          c.stages = s + 1;
          slot_.candidates.push_back(c);
        } else {
          extend(c, s + 1, end, left);
        }
      }
    }
  }

  // With the same shares, so that every way of sharing a GPU still fits.
  void prune() {
    keep_best(slot_.candidates, [](const Candidate& a, const Candidate& b, std::uint32_t s) {
      return a.stage[s].share == b.stage[s].share && a.stage[s].rps_per_vgpu >= b.stage[s].rps_per_vgpu;
    });
  }

  const PooledProblem& problem_;
  const PooledDnn& dnn_;
  const Profile& profile_;
  ProfileTable table_;
  std::uint32_t largest_share_;
  std::vector<std::vector<double>> item_us_;  // [from * types + to][cut]
  std::vector<std::vector<Share>> types_;
  Slot slot_;
};

}  // namespace

std::vector<Slot> enumerate_slots(const PooledProblem& problem, const PooledDnn& dnn, std::uint32_t largest_share) {
  return Enumerator(problem, dnn, largest_share).slots();
}

void keep_best_for_whole_gpus(std::vector<Slot>& slots) {
  for (Slot& slot : slots) {
    keep_best(slot.candidates,
              [](const Candidate& a, const Candidate& b, std::uint32_t s) { return a.gpu_rps(s) >= b.gpu_rps(s); });
    slot.copies = std::min(slot.copies, static_cast<std::uint32_t>(slot.candidates.size()));
  }
}

void give_slots(std::vector<PooledPipeline>& pipelines, const PooledProblem& problem) {
  const auto types = static_cast<std::uint32_t>(problem.types.size());
  std::set<std::uint32_t> taken;
  for (std::uint32_t stages = problem.max_stages; stages >= 1; --stages) {
    std::uint32_t leaves = 1;
    for (std::uint32_t s = stages; s < problem.max_stages; ++s) leaves *= types;
    for (PooledPipeline& p : pipelines) {
      if (p.stages.size() != stages) continue;
      p.slot = 0;
      for (const PooledStage& s : p.stages) p.slot = p.slot * types + s.type;
      for (p.slot *= leaves; !taken.insert(p.slot).second;) ++p.slot;
    }
  }
}

double min_latency_us(const PooledProblem& problem, const PooledDnn& dnn) {
  return Enumerator(problem, dnn, UINT32_MAX).min_latency_us();
}

PooledStage describe_stage(const PooledProblem& problem, const PooledDnn& dnn, Neighbours at, std::uint32_t share,
                           std::uint32_t batch, std::uint32_t first_block, std::uint32_t end_block) {
  const Profile& profile = *dnn.profile;
  const GpuType& gpu = problem.types[at.type];
  PooledStage s{at.type, share, first_block, end_block, 0, 0, 0, 0};
  s.latency_us =
      static_cast<double>(ProfileTable(profile).p50_ns(gpu.name, gpu.share_of(share), batch, first_block, end_block)) /
      1000;
  s.transfer_us = batch * item_us(problem, profile, end_block, at.type, at.behind);
  s.rps_per_vgpu =
      std::min({1e6 * batch / s.latency_us, link_cap(problem, profile, at.type, share, first_block, at.before, at.type),
                link_cap(problem, profile, at.type, share, end_block, at.type, at.behind)});
  return s;
}

}  // namespace leat::planner
