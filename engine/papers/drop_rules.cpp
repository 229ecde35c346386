#include "engine/papers/drop_rules.h"

namespace leat::papers {
namespace {

// The task's module's share of the SLO.
TimeNs share_of(const Site& site, const std::vector<Budgets>& shares, const Task& t) noexcept {
  const std::uint32_t a = site.view.model.module(t.module).application;
  return shares[site.place_of(a)][t.module - site.view.topology().applications[a].modules.front()];
}

void split_as_planned(const Site& site, std::vector<Budgets>& shares) noexcept {
  if (!shares.empty()) return;
  for (std::uint32_t a : site.component.applications)
    shares.push_back(budgets_of(site, a, planned_runs(site, a), true));
}

}  // namespace

// ---- Clipper++ ----

void ClipperSplit::estimates(const Estimates&) noexcept { split_as_planned(site_, shares_); }

// t_e - t_r (+ d) > share_k
Reason ClipperSplit::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  const TimeNs used = start - t.queued_ns + (reading_ == Reading::elapsed_and_execution ? d : 0);
  return used > share_of(site_, shares_, t) ? Reason::unreachable : Reason::none;
}

// ---- PARD-WCL ----

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

// ---- Nexus ----

void NexusWindow::estimates(const Estimates&) noexcept { split_as_planned(site_, shares_); }

TimeNs NexusWindow::must_end(const Task& t) const noexcept {
  return local_ ? std::min(t.give_up_ns, t.queued_ns + share_of(site_, shares_, t)) : t.give_up_ns;
}

void NexusWindow::look_over(const Lane& l, const Server& s, TimeNs start) noexcept {
  if (l.classes == 0) return;
  const ArrivalList& arrived = l.arrivals[site_.view.top_class(l)];
  for (;;) {
    const std::uint32_t size = std::min(site_.cap(s), l.items);
    if (size == 0) return;
    const TimeNs end = start + s.run_ns[size];
    TaskId last_late = kNone;
    TaskId t = arrived.front();
    for (std::uint32_t items = 0; t != kNone && items < size; items += site_.task(t).items, t = site_.task(t).newer) {
      if (end > must_end(site_.task(t))) last_late = t;
    }
    if (last_late == kNone) return;
    for (bool done = false; !done;) {
      const TaskId oldest = arrived.front();
      done = oldest == last_late;
      site_.core.drop(oldest, Reason::window);
      if (arrived.front() == kNone) return;
    }
  }
}

// ---- overload control ----

OverloadControl::OverloadControl(Site& site, const Settings& settings, TimeNs window_ns)
    : site_(site),
      settings_(settings),
      queue_delay_(site.view.model, site.component),
      entries_(site.component.applications.size()) {
  for (ModuleId m : site.component.modules) queue_delay_[m] = Window(window_ns);
}

bool OverloadControl::admit(std::uint32_t application) noexcept {
  constexpr TimeNs kEvery = 100'000'000;
  Entry& e = entries_[site_.place_of(application)];
  if (site_.view.now - e.controlled_ns >= kEvery) {
    e.controlled_ns = site_.view.now;
    bool over = false;
    for (ModuleId m : site_.view.topology().applications[application].modules) {
      queue_delay_[m].roll(site_.view.now);
      over = over || queue_delay_[m].mean() > settings_.threshold_ns;
    }
    e.admit_permille = over ? e.admit_permille * (1000 - settings_.alpha_permille) / 1000
                            : std::min(1000u, e.admit_permille + settings_.alpha_permille);
    e.admit_permille = std::max(e.admit_permille, 10u);
  }
  e.credit += e.admit_permille;
  if (e.credit < 1000) return false;
  e.credit -= 1000;
  return true;
}

void OverloadControl::started(const Batch& b) noexcept {
  Window& delay = queue_delay_[b.module];
  delay.roll(site_.view.now);
  for (TaskId t = b.list.first; t != kNone; t = site_.task(t).next_in_batch)
    delay.add(site_.task(t).taken_ns - site_.task(t).queued_ns);
}

}  // namespace leat::papers
