// Another plan, under load: swapped by pointer between two events.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

void ReadyPlan::operator()(ActivePlan* plan) const noexcept { delete plan; }

bool Scheduler::same_requests(const Topology& t) const noexcept {
  const Topology& own = state_->plan->model.topology();
  if (!t.problem().empty() || t.partitions.size() > state_->machine.partitions() ||
      t.modules.size() != own.modules.size() || t.applications.size() != own.applications.size())
    return false;
  for (std::size_t a = 0; a < t.applications.size(); ++a) {
    if (t.applications[a].modules != own.applications[a].modules) return false;
  }
  for (std::size_t m = 0; m < t.modules.size(); ++m) {
    const ModuleSpec &x = t.modules[m], &y = own.modules[m];
    if (x.before != y.before || x.after != y.after || x.fan_out_cap != y.fan_out_cap) return false;
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
  return std::ranges::equal(a.modules[m].routes, b.modules[m].routes, [&](RouteId of_a, RouteId of_b) {
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

bool Scheduler::State::replace(ReadyPlanPtr& next, bool measured_anew) noexcept {
  const auto slot = std::ranges::find_if(plans.held, [](const ReadyPlanPtr& p) { return p == nullptr; });
  if (slot == plans.held.end()) return false;
  collect_unsent();
  for (TaskId t : scratch.moving) detach(t);
  const ActivePlan& old = *plan;
  *slot = std::move(next);
  plan = slot->get();
  plans.number = static_cast<std::uint32_t>(slot - plans.held.begin());
  plan->load.take_over(old.load);
  grants.replaced(plan->model, machine, ledger);
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
