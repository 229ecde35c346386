// PPipe's ablation (section 7.4): each pool batches by itself and nothing is reserved ahead. A task is booked for one stage
// at a time, when its features are made; links are not looked at, so that features may come later than the batch is due.
//
// A pool's own objective: its part of the SLO, in proportion to the planned times of the route's stages and hand-overs. The
// largest batch that keeps it for each of its members is run.
#include <algorithm>

#include "engine/core/state.h"

namespace leat::core {

// When stage k of the route must have ended for a task that came at `from` and must be done at `until`.
TimeNs Scheduler::State::stage_bound(RouteId id, std::size_t k, TimeNs from, TimeNs until) const noexcept {
  if (until == kNever) return kNever;
  const RouteSpec& route = topology.routes[id];
  double before = 0, all = 0;
  for (std::size_t j = 0; j < route.stages.size(); ++j) {
    const StageSpec& stage = route.stages[j];
    const auto batch = std::min<std::uint32_t>(route.batch, static_cast<std::uint32_t>(stage.latency.p50_ns.size()));
    all += static_cast<double>(duration(route, j, batch) + (j == 0 ? 0 : stage_link_ns(route, j, batch)));
    if (j == k) before = all;
  }
  return k + 1 == route.stages.size() ? until : from + static_cast<TimeNs>(static_cast<double>(until - from) * before / all);
}

// Stage k on the pool's partition that can start first, or in an unsent batch that still keeps the pool's objective.
LegPlan Scheduler::State::probe_pool(RouteId id, std::size_t k, std::uint32_t items, TimeNs ready, TimeNs bound) const noexcept {
  const StageSpec& stage = topology.routes[id].stages[k];
  LegPlan best{.end_ns = kNever}, joined{.end_ns = kNever};
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    const TimeNs start = reservations->partitions[p].earliest(ready, duration(topology.routes[id], k, items));
    const bool idler = best.partition != kNone && start == best.start_ns && partitions[p].free_ns < partitions[best.partition].free_ns;
    if (start < best.start_ns || best.partition == kNone || idler) {
      best = {.partition = p, .start_ns = start, .end_ns = start + duration(topology.routes[id], k, items)};
    }
    for (BookingId b = reservations->first[p]; b != kNone; b = reservations->bookings[b].next) {
      const Booking& booking = reservations->bookings[b];
      if (booking.state != BookingState::planned || booking.route != id || booking.stage != k || booking.start_ns < ready) continue;
      if (!fits(stage, booking.items + items)) continue;
      const TimeNs end = booking.start_ns + duration(topology.routes[id], k, booking.items + items);
      if (end >= joined.end_ns || end > std::min(bound, booking.bound_ns) || !extends(booking, end)) continue;
      joined = {.partition = p, .join = b, .start_ns = booking.start_ns, .end_ns = end};
    }
  }
  return best.start_ns > ready && joined.partition != kNone ? joined : best;
}

// The entry: the route whose pool can start it first.
Scheduler::State::Booked Scheduler::State::book_entry(Lane& lane, TaskId id, TimeNs until) noexcept {
  LegPlan best{.start_ns = kNever};
  RouteId route = kNone;
  for (RouteId r : topology.modules[lane.module].routes) {
    const LegPlan leg = probe_pool(r, 0, tasks[id].items, now, stage_bound(r, 0, tasks[id].queued_ns, until));
    if (leg.partition == kNone || leg.start_ns >= best.start_ns) continue;
    best = leg;
    route = r;
  }
  if (route == kNone) return Booked::wait;
  TimeNs rest = 0;
  for (std::size_t k = 1; k < topology.routes[route].stages.size(); ++k) rest += duration(topology.routes[route], k, 1);
  if (best.end_ns + rest > until) return Booked::late;
  dequeue(id);
  tasks[id].lane = kNone;
  tasks[id].state = TaskState::booked;
  reservations->itineraries[id] = Itinerary{};
  book_leg(id, route, 0, best, stage_bound(route, 0, tasks[id].queued_ns, until));
  return Booked::done;
}

// A stage has ended: the next pool's turn. False: nobody there is up.
bool Scheduler::State::book_next(TaskId id, RouteId route, std::size_t k) noexcept {
  const Task& task = tasks[id];
  const TimeNs until = task.give_up_ns == kNever ? kNever : task.deadline_ns - modules[task.module].after_least_ns;
  const TimeNs bound = stage_bound(route, k, task.queued_ns, until);
  const LegPlan leg = probe_pool(route, k, task.items, now + stage_link_ns(topology.routes[route], k, task.items), bound);
  if (leg.partition == kNone || reservations->bookings.left() == 0) return false;
  book_leg(id, route, k, leg, bound);
  return true;
}

}  // namespace leat::core
