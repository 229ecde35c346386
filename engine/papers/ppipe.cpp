#include "engine/papers/ppipe.h"

#include <utility>

namespace leat::papers {

PPipePlane::PPipePlane(const Making& from, const PPipe& settings)
    : Reservations(from, {.append_only = settings.append_only, .longest_idle = !settings.as_simulated}),
      as_simulated_(settings.as_simulated),
      looked_at_(view_.model, component_) {}

TaskId PPipePlane::next_task(const TaskQueue& queue) const noexcept { return oldest(view_, queue); }

TimeNs PPipePlane::bound_of(ModuleId, TaskId id) const noexcept { return module_bound(view_, task(id)); }

// Algorithm 2: for a batch of so many, stage after stage the earliest slot, on the links into it and on its pool.
PathPlan PPipePlane::earliest(RouteId id, std::uint32_t items) const noexcept {
  return path_of(id, items, as_simulated_, [&](std::size_t k, const LegPlan& before) {
    return earliest_own(id, k, before.partition, items, departure(id, k, before.partition, before.end_ns, items),
                        false);
  });
}

// Step 1: the pipeline with the least waiting at its planned batch.
PathPlan PPipePlane::least_waiting(ModuleId module, TimeNs bound) const noexcept {
  PathPlan plan;
  TimeNs min = kNever;
  for (RouteId r : view_.topology().modules[module].routes) {
    const PathPlan p = earliest(r, view_.route(r).batch);
    if (p.end_ns == kNever) continue;
    const bool last = as_simulated_ && view_.route(r).batch == 1 && p.end_ns > bound;
    const TimeNs waits =
        p.wait_ns + (last ? view_.topology().applications[view_.model.module(module).application].slo_ns : 0);
    if (waits >= min) continue;
    min = waits;
    plan = p;
  }
  return plan;
}

// Algorithm 1: step 1; then the largest batch from the planned one down that is in time for the oldest (step 2); then
// drop, wait or dispatch (step 3).
PPipePlane::Booked PPipePlane::book_waiting(QueueId at, TaskId head, TimeNs bound) noexcept {
  const TaskQueue& queue = view_.queues[at];
  PathPlan plan = least_waiting(queue.module, bound);
  if (plan.end_ns == kNever) return Booked::wait;
  const std::uint64_t mark = task(head).serial + 1;
  if (as_simulated_ && std::exchange(looked_at_[queue.module], mark) != mark && plan.end_ns > bound)
    return Booked::late;
  const RouteId route = plan.route;
  std::uint32_t n = view_.route(route).batch;
  if (n < task(head).items) return Booked::late;
  while (plan.end_ns > bound) {
    if (--n < task(head).items) return Booked::late;
    plan = earliest(route, n);
  }
  if (queue.items < n) {
    const PathPlan more = earliest(route, queue.items + 1);
    const TimeNs last_safe = bound == kNever ? view_.now : view_.now + (bound - more.end_ns) + more.wait_ns;
    if (last_safe > view_.now) {
      core_.wake(at, last_safe);
      return Booked::wait;
    }
    n = queue.items;
    plan = earliest(route, n);
    if (plan.end_ns > bound) return Booked::late;
  }
  book_together(queue, head, plan, n, false);
  return Booked::done;
}

namespace {

constexpr Key<PPipe> kPPipeTable[] = {
    {"append_only", [](const std::string& v, PPipe& s) { return read_flag(v, s.append_only); }},
    {"as_simulated", [](const std::string& v, PPipe& s) { return read_flag(v, s.as_simulated); }},
};

}  // namespace

const std::span<const Key<PPipe>> kPPipeKeys = kPPipeTable;

void use(const PPipe& s, Policy& out) { out.scheduler = std::make_shared<FactoryOf<PPipePlane, PPipe>>(s); }

}  // namespace leat::papers
