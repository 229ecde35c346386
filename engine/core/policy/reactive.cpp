// PPipe's ablation (section 7.4): each pool batches by itself and nothing is reserved ahead. A task is booked for one
// stage at a time, when its features are made; links are not looked at, so that features may come later than the batch
// is due.
//
// A pool's own objective: its part of the SLO, in proportion to the planned times of the route's stages and hand-overs.
// The largest batch that keeps it for each of its members is run.
#include <algorithm>

#include "engine/core/policy/reserved.h"

namespace leat::core {

// When stage k of the route must have ended for a task that came at `from` and must be done at `until`.
TimeNs Reserved::stage_bound(RouteId id, std::size_t k, TimeNs from, TimeNs until) const noexcept {
  if (until == kNever) return kNever;
  const RouteSpec& route = view_.route(id);
  double before = 0, all = 0;
  for (std::size_t j = 0; j < route.stages.size(); ++j) {
    const StageSpec& stage = route.stages[j];
    const auto batch = std::min<std::uint32_t>(route.batch, static_cast<std::uint32_t>(stage.latency.p50_ns.size()));
    all += static_cast<double>(duration(route, j, batch) + (j == 0 ? 0 : stage_link_ns(route, j, batch)));
    if (j == k) before = all;
  }
  return k + 1 == route.stages.size() ? until
                                      : from + static_cast<TimeNs>(static_cast<double>(until - from) * before / all);
}

// Stage k on the pool's partition that can start first, or in an unsent batch that still keeps the pool's objective.
LegPlan Reserved::probe_pool(RouteId id, std::size_t k, std::uint32_t items, TimeNs ready, TimeNs bound,
                             bool joins) const noexcept {
  const StageSpec& stage = view_.route(id).stages[k];
  LegPlan best{.end_ns = kNever}, joined{.end_ns = kNever};
  const TimeNs run = duration(view_.route(id), k, items);
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    const TimeNs start = timelines_[p].earliest(ready, run);
    const bool idler = best.partition != kNone && start == best.start_ns && free_ns(p) < free_ns(best.partition);
    if (start < best.start_ns || best.partition == kNone || idler) {
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
    }
    if (!joins || planned_ns_[p] == kNever) continue;
    for (BookingId b = first_[p]; b != kNone; b = bookings_[b].next) {
      const Booking& booking = bookings_[b];
      if (booking.state != BookingState::planned || booking.route != id || booking.stage != k ||
          booking.start_ns < ready || booking.lone)
        continue;
      if (!fits(stage, booking.items + items)) continue;
      const TimeNs end = booking.start_ns + duration(view_.route(id), k, booking.items + items);
      if (end >= joined.end_ns || end > std::min(bound, booking.bound_ns) || !extends(booking, end)) continue;
      joined = {.partition = p, .join = b, .start_ns = booking.start_ns, .end_ns = end};
    }
  }
  return best.start_ns > ready && joined.partition != kNone ? joined : best;
}

// The entry: the route whose pool can start it first.
Reserved::Booked Reserved::book_entry(const Lane& lane, TaskId id, TimeNs until) noexcept {
  LegPlan best{.start_ns = kNever};
  RouteId route = kNone;
  for (RouteId r : view_.topology().modules[lane.module].routes) {
    if (task(id).items > view_.route(r).batch) continue;
    const LegPlan leg =
        probe_pool(r, 0, task(id).items, view_.now, stage_bound(r, 0, task(id).queued_ns, until), !view_.lone(id));
    if (leg.partition == kNone || leg.start_ns >= best.start_ns) continue;
    best = leg;
    route = r;
  }
  if (route == kNone) return Booked::wait;
  TimeNs rest = 0;
  for (std::size_t k = 1; k < view_.route(route).stages.size(); ++k) rest += duration(view_.route(route), k, 1);
  if (best.end_ns + rest > until) return Booked::late;
  can_.book(id);
  itineraries_[id] = Itinerary{};
  book_leg(id, route, 0, best, stage_bound(route, 0, task(id).queued_ns, until));
  return Booked::done;
}

// A stage has ended: the next pool's turn. False: nobody there is up.
bool Reserved::book_next(TaskId id, RouteId route, std::size_t k) noexcept {
  const Task& t = task(id);
  const TimeNs until = t.give_up_ns == kNever ? kNever : t.deadline_ns - view_.model.module(t.module).after_least_ns;
  const TimeNs bound = stage_bound(route, k, t.queued_ns, until);
  const LegPlan leg =
      probe_pool(route, k, t.items, view_.now + stage_link_ns(view_.route(route), k, t.items), bound, !view_.lone(id));
  if (leg.partition == kNone || bookings_.left() == 0) return false;
  book_leg(id, route, k, leg, bound);
  return true;
}

}  // namespace leat::core
