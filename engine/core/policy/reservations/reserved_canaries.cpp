// Canaries where pipelines are reserved (canary.h).
//
// A canary is booked a stage at a time, as PPipe's ablation does it, because what is believed of its later stages is
// what is in doubt: to reserve by that would keep partitions from others for much too long.
#include <algorithm>

#include "engine/core/policy/reservations/reservation_scheduler.h"

namespace leat::core {

// The least times of what comes after the module, as far as they are seen to be shorter than profiled.
TimeNs ReservationScheduler::min_after_ns(ModuleId module) const noexcept {
  TimeNs max = 0;
  for (ModuleId next : view_.topology().modules[module].after) {
    const TimeNs min = view_.model.module(next).min_ns;
    const TimeNs scaled = std::min(min, view_.load.module(next).scaled(min));
    max = std::max(max, scaled + min_after_ns(next));
  }
  return max;
}

void ReservationScheduler::book_canary_leg(TaskId id, RouteId route, std::size_t k, const LegPlan& leg) noexcept {
  book_leg(id, route, k, leg, kNever);
  Booking& b = bookings_[itineraries_[id].legs[k].booking];
  b.lone = b.canary = true;
}

// With nobody before it, and by what is believed of its stages, the task would be too late on every route.
bool ReservationScheduler::condemned(ModuleId module, TaskId id) const noexcept {
  const TimeNs left = bound_of(module, id) - view_.now;
  const std::uint32_t items = task(id).items;
  return std::ranges::none_of(view_.topology().modules[module].routes, [&](RouteId r) {
    const RouteSpec& route = view_.route(r);
    TimeNs min = 0;
    for (std::size_t k = 0; k < route.stages.size(); ++k) {
      if (!fits(route.stages[k], items)) return false;
      min += duration(route, k, items) + (k > 0 ? stage_link_ns(route, k, items) : 0);
    }
    return min <= left;
  });
}

// The last task that waits, on a first stage's partition for which nothing is booked. False: it is not tried.
bool ReservationScheduler::book_canary(const TaskQueue& queue, TaskId id) noexcept {
  if (!tries_) return false;
  if (!condemned(queue.module, id)) return false;
  for (ModuleId m : component_.modules)
    if (view_.queues[view_.queues.first(m)].tasks > (m == queue.module ? 1u : 0u)) return false;
  for (RouteId r : view_.topology().modules[queue.module].routes) {
    const std::uint32_t items = task(id).items;
    const auto holds = [&](const StageSpec& s) { return fits(s, items); };
    if (!std::ranges::all_of(view_.route(r).stages, holds)) continue;
    for (PartitionId p : view_.route(r).stages.front().pool) {
      if (first_[p] != kNone || !view_.idle(p) || !usable(p) || !canaries_.tries(id, p)) continue;
      core_.book(id);
      itineraries_[id] = Itinerary{};
      const TimeNs end = view_.now + duration(view_.route(r), 0, items);
      book_canary_leg(id, r, 0, {.partition = p, .start_ns = view_.now, .end_ns = end});
      return true;
    }
  }
  return false;
}

// Its next stage: wherever it does not stand in the way of what is booked. False: nobody there is up.
bool ReservationScheduler::book_next(TaskId id, const Batch& batch) noexcept {
  if (!batch.canary) return false;
  const std::size_t k = batch.stage + 1;
  if (bookings_.left() == 0) return false;
  const std::uint32_t items = task(id).items;
  const TimeNs ready = view_.now + stage_link_ns(view_.route(batch.route), k, items);
  const LegPlan leg = earliest_in_pool(batch.route, k, items, ready);
  if (leg.partition == kNone) return false;
  book_canary_leg(id, batch.route, k, leg);
  return true;
}

}  // namespace leat::core
