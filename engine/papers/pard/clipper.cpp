#include "engine/papers/pard/clipper.h"

namespace leat::papers {

void ClipperSplit::estimates(const Estimates&) noexcept { split_as_planned(site_, shares_); }

// t_e - t_r (+ d) > share_k
Reason ClipperSplit::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  const TimeNs used = start - t.queued_ns + (reading_ == Reading::elapsed_and_execution ? d : 0);
  return used > share_of(site_, shares_, t) ? Reason::unreachable : Reason::none;
}

void WorstCaseSplit::estimates(const Estimates& seen) noexcept {
  shares_.resize(site_.component.applications.size());
  for (std::uint32_t a : site_.component.applications) {
    Budgets worst = planned_runs(site_, a);
    const auto& modules = site_.view.topology().applications[a].modules;
    for (std::size_t i = 0; i < modules.size(); ++i)
      if (modules[i] < seen.modules.size()) worst[i] = std::max(worst[i], seen.modules[modules[i]].worst_ns);
    shares_[site_.place_of(a)] = budgets_of(site_, a, worst, false);
  }
}

Reason WorstCaseSplit::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  return start + d - t.queued_ns > share_of(site_, shares_, t) ? Reason::unreachable : Reason::none;
}

}  // namespace leat::papers
