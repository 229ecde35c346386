// Another plan, under load: swapped by pointer between two events.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

void ReadyPlan::operator()(ActivePlan* plan) const noexcept { delete plan; }

bool Scheduler::same_requests(const Topology& t) const noexcept {
  const Topology& own = state_->plan->model.topology();
  const Limits& limits = state_->limits;
  const std::size_t applications = own.applications.size();
  if (!t.problem().empty() || t.partitions.size() > state_->machine.partitions() ||
      t.applications.size() < applications ||
      t.applications.size() > std::max<std::size_t>(limits.applications, applications) ||
      t.modules.size() > std::max<std::size_t>(limits.modules, own.modules.size()))
    return false;
  for (std::size_t a = 0; a < applications; ++a) {
    if (t.applications[a].modules != own.applications[a].modules) return false;
    for (const ModuleId m : own.applications[a].modules) {
      const ModuleSpec &x = t.modules[m], &y = own.modules[m];
      if (own.applications[a].retired) continue;
      if (x.before != y.before || x.after != y.after || x.fan_out_cap != y.fan_out_cap) return false;
    }
  }
  return true;
}

// Tasks that have not been sent, in the order in which they came.
void Scheduler::State::collect_unsent() noexcept {
  scratch.moving.clear();
  unsent.for_each([&](TaskId t) { scratch.moving.push_back(t); });
  std::ranges::sort(scratch.moving, {}, [&](TaskId t) { return tasks[t].serial; });
}

namespace {

// Whether batches of the module take by one plan what they take by the other.
bool same_latencies(const Topology& a, const Topology& b, ModuleId m) noexcept {
  return m < a.modules.size() &&
         std::ranges::equal(a.modules[m].routes, b.modules[m].routes, [&](RouteId of_a, RouteId of_b) {
           return std::ranges::equal(a.routes[of_a].stages, b.routes[of_b].stages,
                                     [](const auto& x, const auto& y) { return x.latency.p50_ns == y.latency.p50_ns; });
         });
}

}  // namespace

// Out of its queue, its batch being formed or its bookings: those go with the old plan.
void Scheduler::State::detach(TaskId id) noexcept {
  Task& t = tasks[id];
  if (t.state == TaskState::queued && t.queue != kNone) {
    plan->queues.erase(tasks, id);
    --ledger.count().modules[t.module].queued;
  } else if (t.state == TaskState::held) {
    coordination->withdrawn(ledger.request(t.request).stream, id);
  } else if (t.state == TaskState::gated) {
    users.gate.withdraw(tasks, id);
  }
  t.queue = kNone;
  t.state = TaskState::loose;
}

// Streams of applications that have an heir. Their requests stay what they are.
void Scheduler::State::inherit(const ActivePlan& old) noexcept {
  const auto& applications = plan->model.topology().applications;
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    if (!ledger.open(s)) continue;
    const std::uint32_t application = ledger.stream(s).config.application;
    if (application < old.model.topology().applications.size() && applications[application].heir != kNone)
      ledger.inherit(s, applications[application].heir);
  }
}

// Plans for coordinated streams belong to the plan in force. Where nothing is new to them they go on as they are.
void Scheduler::State::coordinate_as(ActivePlan& old) noexcept {
  if (plan->coordination == nullptr) return;
  if (plan->coordination->same_times(*old.coordination)) {
    std::swap(plan->coordination, old.coordination);
    coordination = plan->coordination.get();
    return;
  }
  coordination = plan->coordination.get();
  for (PartitionId p = 0; p < machine.partitions(); ++p) coordination->partition(p, machine.partition(p).up);
  for (StreamId s = 0; s < ledger.streams(); ++s)
    if (ledger.open(s) && old.coordination->has(s)) {
      coordination->take_over(now, s, ledger.stream(s).config, *old.coordination);
      Action told;
      told.kind = ActionKind::schedule;
      told.stream = s;
      actions.push(told);
    }
}

bool Scheduler::State::replace(ReadyPlanPtr& next, bool measured_anew) noexcept {
  const auto slot = std::ranges::find_if(plans.held, [](const ReadyPlanPtr& p) { return p == nullptr; });
  if (slot == plans.held.end()) return false;
  collect_unsent();
  for (TaskId t : scratch.moving) detach(t);
  ActivePlan& old = *plan;
  *slot = std::move(next);
  plan = slot->get();
  plans.number = static_cast<std::uint32_t>(slot - plans.held.begin());
  plan->load.take_over(old.load);
  for (ModuleId m = 0; m < old.measured_anew.size(); ++m)  // what it has become is another model
    if (old.model.topology().applications[old.model.module(m).application].retired) {
      plan->load.forget_scale(m);
      if (ledger.count().modules[m].queued == 0) ledger.count().modules[m] = {};
    }
  inherit(old);
  coordinate_as(old);
  grants.replaced(plan->model, plan->paying, machine, ledger);
  for (ModuleId m = 0; measured_anew && m < plan->measured_anew.size(); ++m) {
    if (same_latencies(old.model.topology(), plan->model.topology(), m)) continue;
    plan->measured_anew[m] = 1;
    plan->load.forget_scale(m);
  }
  for (PartitionId p = 0; p < machine.partitions(); ++p) {
    keep_idle(p, 0);
    set_idle(p);
    mark_partition(p);
    const ComponentId c = plan->model.component_of_partition(p);
    if (c != kNone && machine.partition(p).up) plan->schedulers[c]->partition(p, true);
  }
  for (TaskId t : scratch.moving) {
    if (tasks[t].state != TaskState::loose) continue;  // it went with its request
    if (tasks[t].items > plan->model.module(tasks[t].module).max_items) {
      drop_request(tasks[t].request, Outcome::failed, Reason::unschedulable, tasks[t].module);
    } else {
      enter_gate(t);
    }
  }
  dispatch();
  agenda.timer_ns = earliest_timer();
  return true;
}

}  // namespace leat::core
