// How itineraries are booked, changed and given back.
#include <algorithm>
#include <cmath>

#include "engine/core/policy/reserved.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kJoinTries = 4;  // unsent batches of an inner stage looked at for one task

}  // namespace

BookingId Reserved::open_booking(RouteId route, std::size_t stage, const LegPlan& leg) noexcept {
  const BookingId id = bookings_.take();
  insist(id != kNone, "no room for a booking");
  Booking& b = bookings_[id];
  b = Booking{};
  b.state = BookingState::planned;
  b.route = route;
  b.stage = static_cast<std::uint32_t>(stage);
  b.partition = leg.partition;
  b.start_ns = leg.start_ns;
  b.end_ns = leg.start_ns;
  b.due_ns = leg.start_ns;
  BookingId before = kNone, at = first_[leg.partition];
  while (at != kNone && bookings_[at].start_ns <= b.start_ns) {
    before = at;
    at = bookings_[at].next;
  }
  b.previous = before;
  b.next = at;
  (before == kNone ? first_[leg.partition] : bookings_[before].next) = id;
  if (at != kNone) bookings_[at].previous = id;
  can_.wake_at(b.start_ns);
  if (b.start_ns <= view_.now) can_.ask(leg.partition);
  return id;
}

void Reserved::move_end(Booking& b, TimeNs end) noexcept {
  Timeline& t = timelines_[b.partition];
  insist(end >= b.end_ns ? t.reserve(b.end_ns, end) : t.release(end, b.end_ns), "a timeline is full");
  b.end_ns = end;
  look_again(b.partition);
}

void Reserved::use_links(const Leg& leg, PartitionId from, PartitionId to, bool reserve) noexcept {
  const TimeNs begin = reserve ? leg.depart_ns : std::max(leg.depart_ns, view_.now);
  if (begin >= leg.arrive_ns || view_.topology().hosts.empty()) return;
  for (Timeline* t : {&up_[view_.topology().partitions[from].host], &down_[view_.topology().partitions[to].host]}) {
    t->expire(view_.now);
    insist(reserve ? t->reserve(begin, leg.arrive_ns) : t->release(begin, leg.arrive_ns), "a link's timeline is full");
  }
}

// Books leg k of the task's path, in a booking of its own or in one that it joins.
void Reserved::book_leg(TaskId id, RouteId route, std::size_t k, const LegPlan& plan, TimeNs bound) noexcept {
  Leg& leg = itineraries_[id].legs[k];
  leg.booking = plan.join != kNone ? plan.join : open_booking(route, k, plan);
  leg.depart_ns = plan.depart_ns;
  leg.arrive_ns = plan.arrive_ns;
  Booking& b = bookings_[leg.booking];
  leg.next = b.first;
  b.first = id;
  ++b.tasks;
  ++unsent_of_[task(id).level];
  b.items += task(id).items;
  b.lone = view_.lone(id);
  if (plan.join == kNone)
    list_unsent(leg.booking);
  else
    resized(leg.booking, b.items - task(id).items);
  b.unmade += k > 0 ? 1 : 0;
  b.bound_ns = std::min(b.bound_ns, bound);
  move_end(b, plan.end_ns);
  if (plan.depart_ns < plan.arrive_ns)
    use_links(leg, bookings_[itineraries_[id].legs[k - 1].booking].partition, b.partition, true);
}

// Takes the task out of its unsent bookings from stage `from` on; what was sent stays. Last stage first, because the
// links into a stage are found through the stage before it; where that has ended, the features are already on their
// way.
void Reserved::unbook(TaskId id, std::size_t from) noexcept {
  for (std::size_t k = kMaxStages; k-- > from;) {
    Leg& leg = itineraries_[id].legs[k];
    if (leg.booking == kNone) continue;
    Booking& b = bookings_[leg.booking];
    if (b.state != BookingState::planned) continue;
    const BookingId before = k > 0 ? itineraries_[id].legs[k - 1].booking : kNone;
    if (before != kNone) use_links(leg, bookings_[before].partition, b.partition, false);
    TaskId* link = &b.first;
    while (*link != id) link = &itineraries_[*link].legs[k].next;
    *link = leg.next;
    --unsent_of_[task(id).level];
    if (--b.tasks == 0) unlist(leg.booking);
    b.items -= task(id).items;
    if (b.tasks > 0) resized(leg.booking, b.items + task(id).items);
    b.unmade -= before != kNone ? 1 : 0;
    const BookingId left = leg.booking;
    leg = Leg{};
    if (b.tasks == 0) {
      close_booking(left);
    } else {
      move_end(b, std::min(b.end_ns, b.start_ns + duration(view_.route(b.route), b.stage, b.items)));
    }
  }
}

void Reserved::close_booking(BookingId id) noexcept {
  Booking& b = bookings_[id];
  const TimeNs from = std::max(b.start_ns, view_.now);
  if (from < b.end_ns) insist(timelines_[b.partition].release(from, b.end_ns), "a timeline is full");
  (b.previous == kNone ? first_[b.partition] : bookings_[b.previous].next) = b.next;
  if (b.next != kNone) bookings_[b.next].previous = b.previous;
  b.state = BookingState::free;  // its last member took it off the list, or its sending
  look_again(b.partition);
  bookings_.give(id);
}

void Reserved::book_path(TaskId id, const PathPlan& plan, TimeNs bound) noexcept {
  itineraries_[id] = Itinerary{};
  for (std::size_t k = 0; k < view_.route(plan.route).stages.size(); ++k)
    book_leg(id, plan.route, k, plan.legs[k], bound);
}

// One task more for an unsent batch, as `leg` says. All its members' later stages are booked anew; if one of them would
// be late, all is put back.
bool Reserved::grow(LegPlan leg, TaskId id, TimeNs bound) noexcept {
  Booking& b = bookings_[leg.join];
  if (b.lone || view_.lone(id)) return false;
  const RouteSpec& route = view_.route(b.route);
  const std::size_t k = b.stage, stages = route.stages.size();
  leg.start_ns = b.start_ns;
  leg.end_ns = b.start_ns + duration(route, k, b.items + task(id).items);
  if (!extends(b, leg.end_ns)) return false;
  TimeNs least = 0;
  for (std::size_t j = k + 1; j < stages; ++j) least += stage_link_ns(route, j, 1) + duration(route, j, 1);
  if (leg.end_ns + least > std::min(b.bound_ns, bound) || (k + 1 < stages && b.tasks >= kGrowItems)) return false;
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
void Reserved::put_back(const KeptLegs& kept, RouteId route, std::size_t from) noexcept {
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
bool Reserved::book_rest(std::span<const KeptLegs> group, RouteId route, std::size_t from) noexcept {
  for (std::size_t k = from; k < view_.route(route).stages.size(); ++k) {
    for (const KeptLegs& member : group) {
      const Booking& before = bookings_[itineraries_[member.task].legs[k - 1].booking];
      const LegPlan leg = probe_leg(route, k, before.partition, before.end_ns, task(member.task).items, member.bound_ns,
                                    !view_.lone(member.task));
      if (leg.partition == kNone || leg.end_ns > member.bound_ns) return false;
      book_leg(member.task, route, k, leg, member.bound_ns);
    }
  }
  return true;
}

// A route of three stages or more, booked stage by stage: where the task would wait at an inner stage it joins an
// unsent batch there that gains by it. The last stage must have ended by `until`.
bool Reserved::book_through(TaskId id, const PathPlan& plan, TimeNs bound, TimeNs until) noexcept {
  const Itinerary& itinerary = itineraries_[id];
  const std::size_t stages = view_.route(plan.route).stages.size();
  itineraries_[id] = Itinerary{};
  book_leg(id, plan.route, 0, plan.legs[0], bound);
  for (std::size_t k = 1; k < stages; ++k) {
    const Booking& before = bookings_[itinerary.legs[k - 1].booking];
    const LegPlan leg =
        probe_leg(plan.route, k, before.partition, before.end_ns, task(id).items, bound, !view_.lone(id));
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

bool Reserved::join_inner(TaskId id, RouteId route, std::size_t k, TimeNs bound) noexcept {
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
