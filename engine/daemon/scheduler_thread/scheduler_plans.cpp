// Other plans on the scheduler thread: swapped with their tables, given back when the last batch formed under them is
// over; and what the control thread waits for meanwhile.
#include <algorithm>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

using shm::EventKind;

std::vector<PlanTables::RouteLimits> route_limits(const core::Topology& topology) {
  std::vector<PlanTables::RouteLimits> out;
  for (const core::RouteSpec& route : topology.routes)
    out.push_back({.batch = route.batch, .fan_out_cap = topology.modules[route.module].fan_out_cap});
  return out;
}

std::unique_ptr<LoopPlan> SchedulerLoop::prepare(const core::Topology& topology, const core::Policy& policy,
                                                 PlanTables tables) const {
  auto plan = std::make_unique<LoopPlan>();
  plan->prepared = core_->prepare(topology, policy, tables.names);
  plan->id = plan->prepared.core.get();
  plan->tables = std::move(tables);
  return plan;
}

// Of two that wait the later one counts.
void SchedulerLoop::take_plan(LoopPlan* plan) noexcept {
  if (plans_.next != nullptr)
    control_.notify({.kind = SchedulerEvent::Kind::plan_retired, .plan = plans_.next.release()});
  plans_.next.reset(plan);
}

void SchedulerLoop::swap_plans(std::int64_t now) noexcept {
  const auto free = std::ranges::find_if(plans_.held, [](const auto& p) { return p == nullptr; });
  if (plans_.next != nullptr && free != plans_.held.end() &&
      core_->replace(now, plans_.next->prepared, plans_.next->measured_anew)) {
    *free = std::move(plans_.next);
    take_over(**free);
    ++plans_.earlier;
    metrics_.event(EventKind::plan_replaced, now, UINT32_MAX, 0);
    control_.notify({.kind = SchedulerEvent::Kind::plan_in_force, .plan = free->get()});
    drain_actions(now);
  }
  if (plans_.earlier != 0) retire_plan();
}

void SchedulerLoop::take_over(LoopPlan& plan) noexcept {
  plans_.in_force = &plan.tables;
  for (auto& [edge, rows] : plan.new_rows) features_.begin(edge, std::move(rows));
  for (const auto& [edge, spec] : plan.tables.edges) row_bytes_[edge] = spec.row_bytes;
  for (const std::uint32_t s : streams_.open) {
    Stream& stream = streams_[s];
    stream.granted.application = heir_of(stream.granted.application);
    stream.unserved = closed(stream.granted.application);
  }
}

std::uint32_t SchedulerLoop::heir_of(std::uint32_t application) const noexcept {
  const std::vector<std::uint32_t>& heirs = plans_.in_force->heirs;
  return application < heirs.size() && heirs[application] != core::kNone ? heirs[application] : application;
}

void SchedulerLoop::retire_plan() noexcept {
  core::ReadyPlanPtr retired = core_->take_retired();
  if (retired == nullptr) return;
  --plans_.earlier;
  // The first has no name: the core made it itself.
  auto held = std::ranges::find_if(plans_.held, [&](const auto& p) { return p != nullptr && p->id == retired.get(); });
  if (held == plans_.held.end())
    held = std::ranges::find_if(plans_.held, [&](const auto& p) { return p != nullptr && p->id == nullptr; });
  (*held)->prepared.core = std::move(retired);
  control_.notify({.kind = SchedulerEvent::Kind::plan_retired, .plan = held->release()});
}

void SchedulerLoop::tell_quiet() noexcept {
  for (std::size_t i = 0; i < plans_.awaited.size();) {
    const Quiet of = plans_.awaited[i];
    const bool is = of.partition != core::kNone
                        ? core_->quiet(of.partition) && partitions_[of.partition].queued == 0 &&
                              partitions_[of.partition].units.count == 0 && !partitions_[of.partition].sequel.live
                        : core_->in_flight(of.application) == 0;
    if (!is) {
      ++i;
      continue;
    }
    plans_.awaited[i] = plans_.awaited.back();
    plans_.awaited.pop_back();
    control_.notify({.kind = SchedulerEvent::Kind::quiet, .partition = of.partition, .application = of.application});
  }
}

}  // namespace leat::daemon
