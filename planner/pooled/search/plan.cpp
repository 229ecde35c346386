// From options of each DNN to a plan: one option a DNN within the counts.
#include <algorithm>
#include <cmath>

#include "planner/pooled/search/search.h"

namespace leat::planner {
struct PooledSearch::Chain {
  std::vector<std::uint32_t> gpus;
  double waste = 0;
  std::uint32_t before = 0;  // chain of the DNNs before
  const Option* option = nullptr;
};

bool PooledSearch::combine(double limit, std::vector<PooledDnnPlan>& plan) const {
  std::vector<std::vector<std::uint32_t>> min_after(dnns_ + 1, std::vector<std::uint32_t>(types_, 0));
  std::vector<double> waste_after(dnns_ + 1, 0);
  for (std::uint32_t i = dnns_; i-- > 0;) {
    if (options_[i].empty()) return false;
    double min = INFINITY;
    for (const Option& o : options_[i]) min = std::min(min, o.waste);
    waste_after[i] = waste_after[i + 1] + std::max(0.0, min);
    for (std::uint32_t g = 0; g < types_; ++g) {
      std::uint32_t fewest = UINT32_MAX;
      for (const Option& o : options_[i]) fewest = std::min(fewest, o.gpus[g]);
      min_after[i][g] = min_after[i + 1][g] + fewest;
    }
  }
  std::vector<std::vector<Chain>> chains(dnns_ + 1);
  chains[0].push_back({std::vector<std::uint32_t>(types_, 0), 0, 0, nullptr});
  for (std::uint32_t i = 0; i < dnns_; ++i) {
    std::vector<Chain> all;
    for (std::uint32_t b = 0; b < chains[i].size(); ++b) {
      for (const Option& o : options_[i]) {
        Chain next{chains[i][b].gpus, chains[i][b].waste + o.waste, b, &o};
        bool fits = next.waste + waste_after[i + 1] <= limit;
        for (std::uint32_t g = 0; g < types_ && fits; ++g) {
          next.gpus[g] += o.gpus[g];
          fits = next.gpus[g] + min_after[i + 1][g] <= problem_.types[g].count * grain_;
        }
        if (fits) all.push_back(std::move(next));
      }
    }
    std::sort(all.begin(), all.end(), [](const Chain& a, const Chain& b) { return a.gpus < b.gpus; });
    auto& kept = chains[i + 1];
    for (Chain& c : all) {
      if (std::none_of(kept.rbegin(), kept.rend(), [&](const Chain& k) { return covers(k.gpus, c.gpus); }))
        kept.push_back(std::move(c));
    }
    if (kept.empty()) return false;
  }
  std::vector<const Option*> chosen(dnns_);
  for (std::uint32_t i = dnns_, at = 0; i-- > 0;) {
    chosen[i] = chains[i + 1][at].option;
    at = chains[i + 1][at].before;
  }
  plan = describe(chosen);
  return true;
}

std::vector<PooledDnnPlan> PooledSearch::describe(const std::vector<const Option*>& options) const {
  std::vector<PooledDnnPlan> out(dnns_);
  for (std::uint32_t i = 0; i < dnns_; ++i) {
    for (const Pick& pick : options[i]->picks) {
      const Slot& slot = slots_[i][pick.slot];
      const Candidate& c = slot.candidates[pick.label.candidate];
      PooledPipeline p;
      p.batch = c.batch;
      p.rps = INFINITY;
      std::uint32_t first = 0;
      for (std::uint32_t s = 0; s < c.stages; ++s) {
        const Neighbours at{slot.types[s == 0 ? 0 : s - 1], slot.types[s], slot.types[s + 1 < c.stages ? s + 1 : s]};
        PooledStage stage =
            describe_stage(problem_, problem_.dnns[i], at, c.stage[s].share, c.batch, first, c.stage[s].end_block);
        stage.vgpus = std::uint64_t{pick.label.count[s]} * (unit_ == 1 ? c.stage[s].share : 1);
        p.rps = std::min(p.rps, static_cast<double>(stage.vgpus) * stage.rps_per_vgpu);
        p.stages.push_back(stage);
        first = c.stage[s].end_block;
      }
      out[i].rps += p.rps;
      out[i].pipelines.push_back(std::move(p));
    }
    if (!rules_.free) give_slots(out[i].pipelines, problem_);
  }
  return out;
}

}  // namespace leat::planner
