// How itineraries are booked, changed and given back.
#include <algorithm>

#include "engine/core/policy/reservations/reservations.h"

namespace leat::core {

BookingId Reservations::open_booking(RouteId route, std::size_t stage, const LegPlan& leg) noexcept {
  const BookingId id = bookings_.take();
  check(id != kNone, "no room for a booking");
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
  core_.wake_at(b.start_ns);
  if (b.start_ns <= view_.now) core_.ask(leg.partition);
  return id;
}

void Reservations::move_end(Booking& b, TimeNs end) noexcept {
  Timeline& t = timelines_[b.partition];
  check(end >= b.end_ns ? t.reserve(b.end_ns, end) : t.release(end, b.end_ns), "a timeline is full");
  b.end_ns = end;
  look_again(b.partition);
}

void Reservations::use_links(const Leg& leg, PartitionId from, PartitionId to, bool reserve) noexcept {
  const TimeNs begin = reserve ? leg.depart_ns : std::max(leg.depart_ns, view_.now);
  if (begin >= leg.arrive_ns || view_.topology().hosts.empty()) return;
  for (Timeline* t :
       {&links_.up[view_.topology().partitions[from].host], &links_.down[view_.topology().partitions[to].host]}) {
    t->expire(view_.now);
    check(reserve ? t->reserve(begin, leg.arrive_ns) : t->release(begin, leg.arrive_ns), "a link's timeline is full");
  }
}

// Books leg k of the task's path, in a booking of its own or in one that it joins.
void Reservations::book_leg(TaskId id, RouteId route, std::size_t k, const LegPlan& plan, TimeNs bound) noexcept {
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

void Reservations::book_path(TaskId id, const PathPlan& plan, TimeNs bound) noexcept {
  itineraries_[id] = Itinerary{};
  for (std::size_t k = 0; k < view_.route(plan.route).stages.size(); ++k)
    book_leg(id, plan.route, k, plan.legs[k], bound);
}

// `n` items of the queue in one batch, on the whole path.
void Reservations::book_together(const TaskQueue& queue, TaskId head, PathPlan plan, std::uint32_t n,
                                 bool one_by_one) noexcept {
  const std::size_t stages = view_.route(plan.route).stages.size();
  std::array<TimeNs, kMaxStages> depart{}, each{};  // on the links the members follow one another
  for (std::size_t k = 1; k < stages; ++k) {
    depart[k] = plan.legs[k].depart_ns;
    each[k] = (plan.legs[k].arrive_ns - plan.legs[k].depart_ns) / n;
  }
  std::uint32_t booked = 0;
  for (TaskId t = head; t != kNone && booked + task(t).items <= n; t = next_task(queue)) {
    if (t != head && (view_.lone(head) || view_.lone(t))) break;
    if (one_by_one && task(t).items > 1) break;  // its features travel in one piece
    for (std::size_t k = 0; k < stages; ++k) {
      LegPlan& leg = plan.legs[k];
      if (booked > 0) leg.join = itineraries_[head].legs[k].booking;
      if (k > 0 && leg.each_ns > 0) {  // between what is booked, as travel_each() found
        const Timeline &up = links_.up[view_.topology().partitions[plan.legs[k - 1].partition].host],
                       &down = links_.down[view_.topology().partitions[leg.partition].host];
        depart[k] = Timeline::earliest_on_both(up, down, depart[k], leg.each_ns);
        each[k] = leg.each_ns;
      }
      leg.depart_ns = depart[k];
      leg.arrive_ns = depart[k] += each[k] * task(t).items;
    }
    booked += task(t).items;
    const TimeNs bound = bound_of(queue.module, t);
    core_.book(t);
    book_path(t, plan, bound);
  }
}

// Takes the task out of its unsent bookings from stage `from` on; what was sent stays. Last stage first, because the
// links into a stage are found through the stage before it; where that has ended, the features are already on their
// way.
void Reservations::unbook(TaskId id, std::size_t from) noexcept {
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

void Reservations::close_booking(BookingId id) noexcept {
  Booking& b = bookings_[id];
  const TimeNs from = std::max(b.start_ns, view_.now);
  if (from < b.end_ns) check(timelines_[b.partition].release(from, b.end_ns), "a timeline is full");
  (b.previous == kNone ? first_[b.partition] : bookings_[b.previous].next) = b.next;
  if (b.next != kNone) bookings_[b.next].previous = b.previous;
  b.state = BookingState::free;  // its last member took it off the list, or its sending
  look_again(b.partition);
  bookings_.give(id);
}

}  // namespace leat::core
