// Paths of one task, or of several that go together, that may join what is booked: nothing changes here.
#include <algorithm>

#include "engine/core/policy/reservations/reservation_scheduler.h"

namespace leat::core {

// Whether a member of this unsent batch has its next stage already.
bool ReservationScheduler::booked_on(const Booking& booking) const noexcept {
  for (TaskId t = booking.first; t != kNone; t = itineraries_[t].legs[booking.stage].next) {
    if (itineraries_[t].legs[booking.stage + 1].booking != kNone) return true;
  }
  return false;
}

// The same, made at `made`, or an unsent batch to join.
LegPlan ReservationScheduler::earliest_leg(RouteId id, std::size_t k, PartitionId from, TimeNs made,
                                           std::uint32_t items, TimeNs bound, bool join, bool apart) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages[k];
  TimeNs rest = 0;
  for (std::size_t j = k + 1; j < route.stages.size(); ++j)
    rest += stage_link_ns(route, j, items) + duration(route, j, items);
  const Departure when = departure(id, k, from, made, items);
  const LegPlan own = earliest_own(id, k, from, items, when, apart);
  const bool in_time = own.partition != kNone && own.end_ns + rest <= bound;
  if (!join || (in_time && own.start_ns == own.arrive_ns)) return own;
  LegPlan joined;
  const auto run = [&](std::uint32_t held) -> TimeNs {
    if (!fits(stage, held + items) || (in_time && !gains(stage, held, items))) return -1;
    return duration(route, k, held + items);
  };
  const BookingId found = book(id, k).unsent.first_to_end(
      std::max(view_.now, made - 1) + 1, bound - rest, run, [&](BookingId at, TimeNs end) {
        const Booking& booking = bookings_[at];
        if (booking.lone) return false;
        const bool near = view_.topology().partitions[booking.partition].host == when.here;
        if (booking.start_ns < (near ? when.near_ns : when.far_ns)) return false;
        if (end + rest > booking.bound_ns || !usable(booking.partition) || !extends(booking, end)) return false;
        if (k + 1 < route.stages.size() && booked_on(booking))
          return false;  // its members would have to be booked anew: grow()
        joined = {.partition = booking.partition, .join = at, .start_ns = booking.start_ns, .end_ns = end};
        travel(route, k, from, items, when, joined);
        return joined.arrive_ns <= booking.start_ns;
      });
  return found != kNone ? joined : own;
}

PathPlan ReservationScheduler::earliest_path(RouteId id, std::uint32_t items, TimeNs bound, bool join,
                                             bool apart) const noexcept {
  return path_of(id, items, true, [&](std::size_t k, const LegPlan& before) {
    return earliest_leg(id, k, before.partition, before.end_ns, items, bound, join, apart);
  });
}

}  // namespace leat::core
