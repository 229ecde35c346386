// An unsent batch grows by one task, at its first stage or at an inner one.
#include <algorithm>

#include "engine/core/policy/reservations/reservation_scheduler.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kJoinTries = 4;  // unsent batches of an inner stage looked at for one task

}  // namespace

// One task more for an unsent batch, as `leg` says. All its members' later stages are booked anew; if one of them would
// be late, all is put back.
bool ReservationScheduler::grow(LegPlan leg, TaskId id, TimeNs bound) noexcept {
  Booking& b = bookings_[leg.join];
  if (b.lone || view_.lone(id)) return false;
  const RouteSpec& route = view_.route(b.route);
  const std::size_t k = b.stage, stages = route.stages.size();
  leg.start_ns = b.start_ns;
  leg.end_ns = b.start_ns + duration(route, k, b.items + task(id).items);
  if (!extends(b, leg.end_ns)) return false;
  TimeNs min = 0;
  for (std::size_t j = k + 1; j < stages; ++j) min += stage_link_ns(route, j, 1) + duration(route, j, 1);
  if (leg.end_ns + min > std::min(b.bound_ns, bound) || (k + 1 < stages && b.tasks >= kGrowItems)) return false;
  std::array<KeptLegs, kGrowItems> group;
  std::size_t n = 0;
  group[0].task = id;
  group[0].bound_ns = bound;
  ++n;
  for (TaskId t = b.first; t != kNone && k + 1 < stages; t = itineraries_[t].legs[k].next, ++n) {
    group[n].task = t;
    for (std::size_t j = k + 1; j < stages; ++j) {
      const Leg& later = itineraries_[t].legs[j];
      if (later.booking == kNone) return false;
      const Booking& own = bookings_[later.booking];
      if (own.start_ns <= view_.now) return false;  // about to be sent
      group[n].bound_ns = own.bound_ns;
      group[n].legs[j] = {.partition = own.partition,
                          .depart_ns = later.depart_ns,
                          .arrive_ns = later.arrive_ns,
                          .start_ns = own.start_ns,
                          .end_ns = own.end_ns};
    }
  }
  const TimeNs old_bound = b.bound_ns;
  for (std::size_t i = 1; i < n; ++i) unbook(group[i].task, k + 1);
  if (k == 0) itineraries_[id] = Itinerary{};
  book_leg(id, b.route, k, leg, bound);
  if (book_rest({group.data(), n}, b.route, k + 1)) return true;
  unbook(id, k);
  for (std::size_t i = 1; i < n; ++i) unbook(group[i].task, k + 1);
  for (std::size_t i = 1; i < n; ++i) put_back(group[i], b.route, k + 1);
  b.bound_ns = old_bound;
  look_again(b.partition);
  return false;
}

// Into the same bookings as before: with those who stayed there or are back already, or alone.
void ReservationScheduler::put_back(const KeptLegs& kept, RouteId route, std::size_t from) noexcept {
  for (std::size_t k = from; k < view_.route(route).stages.size(); ++k) {
    const KeptLegs::Kept& was = kept.legs[k];
    LegPlan leg{.partition = was.partition,
                .depart_ns = was.depart_ns,
                .arrive_ns = was.arrive_ns,
                .start_ns = was.start_ns,
                .end_ns = was.end_ns};
    for (BookingId other = first_[leg.partition]; other != kNone && bookings_[other].start_ns <= leg.start_ns;
         other = bookings_[other].next) {
      const Booking& shared = bookings_[other];
      if (shared.start_ns != leg.start_ns || shared.state != BookingState::planned || shared.route != route ||
          shared.stage != k)
        continue;
      leg.join = other;
    }
    book_leg(kept.task, route, k, leg, kept.bound_ns);
  }
}

// The stages from `from` on of tasks that stand together in a batch; stage by stage, so that they may share batches
// again. False: one would be late; what was booked stays booked.
bool ReservationScheduler::book_rest(std::span<const KeptLegs> group, RouteId route, std::size_t from) noexcept {
  for (std::size_t k = from; k < view_.route(route).stages.size(); ++k) {
    for (const KeptLegs& member : group) {
      const Booking& before = bookings_[itineraries_[member.task].legs[k - 1].booking];
      const LegPlan leg = earliest_leg(route, k, before.partition, before.end_ns, task(member.task).items,
                                       member.bound_ns, !view_.lone(member.task));
      if (leg.partition == kNone || leg.end_ns > member.bound_ns) return false;
      book_leg(member.task, route, k, leg, member.bound_ns);
    }
  }
  return true;
}

// A route of three stages or more, booked stage by stage: where the task would wait at an inner stage it joins an
// unsent batch there that gains by it. The last stage must have ended by `until`.
bool ReservationScheduler::book_through(TaskId id, const PathPlan& plan, TimeNs bound, TimeNs until) noexcept {
  const Itinerary& itinerary = itineraries_[id];
  const std::size_t stages = view_.route(plan.route).stages.size();
  itineraries_[id] = Itinerary{};
  book_leg(id, plan.route, 0, plan.legs[0], bound);
  for (std::size_t k = 1; k < stages; ++k) {
    const Booking& before = bookings_[itinerary.legs[k - 1].booking];
    const LegPlan leg =
        earliest_leg(plan.route, k, before.partition, before.end_ns, task(id).items, bound, !view_.lone(id));
    const bool in_time = leg.partition != kNone && leg.end_ns <= bound;
    if (k + 1 < stages && (!in_time || leg.start_ns > leg.arrive_ns) && join_inner(id, plan.route, k, bound)) break;
    if (!in_time) break;
    book_leg(id, plan.route, k, leg, bound);
  }
  const BookingId last = itinerary.legs[stages - 1].booking;
  if (last != kNone && bookings_[last].end_ns <= until) return true;
  unbook(id, 0);
  return false;
}

bool ReservationScheduler::join_inner(TaskId id, RouteId route, std::size_t k, TimeNs bound) noexcept {
  const StageSpec& stage = view_.route(route).stages[k];
  const Booking& before = bookings_[itineraries_[id].legs[k - 1].booking];
  const PartitionId from = before.partition;
  const TimeNs made = before.end_ns;
  std::uint32_t tries = 0;
  for (PartitionId p : stage.pool) {
    if (planned_ns_[p] == kNever || !usable(p)) continue;
    for (BookingId b = first_[p]; b != kNone && tries < kJoinTries; b = bookings_[b].next) {
      const Booking& c = bookings_[b];
      if (c.state != BookingState::planned || c.route != route || c.stage != k ||
          c.start_ns <= std::max(view_.now, made))
        continue;
      if (!fits(stage, c.items + task(id).items) || !gains(stage, c.items, task(id).items)) continue;
      LegPlan leg{.partition = p, .join = b};
      const std::uint32_t items = task(id).items;
      travel(view_.route(route), k, from, items, departure(route, k, from, made, items), leg);
      if (leg.arrive_ns > c.start_ns ||
          !extends(c, c.start_ns + duration(view_.route(route), k, c.items + task(id).items)))
        continue;
      ++tries;
      if (grow(leg, id, bound)) return true;
    }
  }
  return false;
}

}  // namespace leat::core
