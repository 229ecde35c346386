// Shares of an application's SLO, a module.
#pragma once

#include <array>

#include "engine/papers/queues.h"

namespace leat::papers {

using Budgets = std::array<TimeNs, kMaxModulesPerApplication>;  // [module within its application]

// In proportion to `weights` on the longest path; with `plans_first`, a budget that the plan states holds instead.
[[nodiscard]] inline Budgets budgets_of(const Site& site, std::uint32_t application, const Budgets& weights,
                                        bool plans_first) noexcept {
  const Topology& t = site.view.topology();
  const ApplicationSpec& app = t.applications[application];
  const TimeNs longest = std::max<TimeNs>(1, longest_path(t, app, weights));
  Budgets out{};
  for (std::size_t i = 0; i < app.modules.size(); ++i) {
    const TimeNs stated = t.modules[app.modules[i]].budget_ns;
    out[i] = plans_first && stated > 0
                 ? stated
                 : static_cast<TimeNs>(static_cast<double>(app.slo_ns) * static_cast<double>(weights[i]) /
                                       static_cast<double>(longest));
  }
  return out;
}

// d of each module at the plan's batches.
[[nodiscard]] inline Budgets planned_runs(const Site& site, std::uint32_t application) noexcept {
  Budgets out{};
  const ApplicationSpec& app = site.view.topology().applications[application];
  for (std::size_t i = 0; i < app.modules.size(); ++i) out[i] = site.plans[app.modules[i]].run_ns;
  return out;
}

// The task's module's share of the SLO.
[[nodiscard]] inline TimeNs share_of(const Site& site, const std::vector<Budgets>& shares, const Task& t) noexcept {
  const std::uint32_t a = site.view.model.module(t.module).application;
  return shares[site.place_of(a)][t.module - site.view.topology().applications[a].modules.front()];
}

// Once: as the plan says, a component's application.
inline void split_as_planned(const Site& site, std::vector<Budgets>& shares) noexcept {
  if (!shares.empty()) return;
  for (std::uint32_t a : site.component.applications)
    shares.push_back(budgets_of(site, a, planned_runs(site, a), true));
}

}  // namespace leat::papers
