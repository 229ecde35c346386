// What a queue does with its tasks.
#include <algorithm>
#include <bit>

#include "engine/core/policy/reservations/reservation_scheduler.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kGrowTries = 12;  // unsent batches looked at before a task is booked alone
constexpr std::uint32_t kEvicted = 8;     // tasks that make room for one at a later stage
constexpr std::uint32_t kPlaces = 64;     // unsent batches looked at for somebody lower

bool fits(const RouteSpec& route, std::uint32_t items) {
  return std::all_of(route.stages.begin(), route.stages.end(),
                     [&](const StageSpec& s) { return core::fits(s, items); });
}

}  // namespace

// The end of this module's stages by which the task can still be in time.
TimeNs ReservationScheduler::bound_of(ModuleId module, TaskId id) const noexcept {
  if (task(id).give_up_ns == kNever) return kNever;
  return task(id).deadline_ns - min_after_ns(module) - room_after(module);
}

// On the route with the least waiting that is in time: with others where that is how the route is entered, else the
// task alone.
ReservationScheduler::Booked ReservationScheduler::book_waiting(QueueId at, TaskId id, TimeNs bound) noexcept {
  const Arrival task{.queue = at, .id = id, .items = this->task(id).items, .bound = bound, .joins = !view_.lone(id)};
  if (!comes_together(task)) return book_alone(task, min_wait(task, false), false);
  PathPlan path = min_wait(task, true);
  if (path.end_ns > bound) return book_alone(task, min_wait(task, false), true);  // only alone it could be in time
  const Booked done = book_whole(at, id, path, bound);
  return done == Booked::late ? book_alone(task, path, false) : done;
}

// Its module is entered by several tasks at a time. Among levels tasks take each other's places, one by one.
bool ReservationScheduler::comes_together(const Arrival& a) const noexcept {
  const TaskQueue& queue = view_.queues[a.queue];
  return together_[queue.module] != 0 && a.joins && a.items == 1 && a.bound != kNever &&
         std::has_single_bit(queue.classes) && !any_lower(a.id);
}

// Some route of its module has tables for so many items.
bool ReservationScheduler::can_hold(const Arrival& a) const noexcept {
  const auto& routes = view_.topology().modules[view_.queues[a.queue].module].routes;
  return std::ranges::any_of(routes, [&](RouteId r) { return fits(view_.route(r), a.items); });
}

// On that path, or before it in the place of somebody lower, or in a batch that grows by it. `squeezed`: its route is
// entered by several, which would be late.
ReservationScheduler::Booked ReservationScheduler::book_alone(const Arrival& a, PathPlan path, bool squeezed) noexcept {
  if (path.end_ns == kNever) return can_hold(a) ? Booked::wait : Booked::late;  // wait: nobody is up
  const TaskQueue& queue = view_.queues[a.queue];
  // Who waits leaves his batch room to grow.
  const TimeNs room = path.wait_ns > 0 && a.bound != kNever ? room_to_grow(path.route) : 0;
  if (path.wait_ns > 0 && any_lower(a.id) && displace(a, room, path)) return Booked::done;
  const auto late = [&] { return path.end_ns + room > a.bound; };
  if (late() || path.legs[0].start_ns > view_.now) {
    if (grow_some(queue, a.id, a.bound)) return Booked::done;
    // The same path as before, but a booking that was put back has another id.
    if (!late()) path = earliest_path(path.route, a.items, a.bound, a.joins);
  }
  if (squeezed && whole_[path.route].items > a.items) return Booked::late;  // it would take more time than its share
  if (path.wait_ns > 0 && view_.route(path.route).stages.size() > 2) {
    if (!book_through(a.id, path, a.bound, a.bound - room)) return Booked::late;
    core_.book(a.id);
    return Booked::done;
  }
  if (late()) return Booked::late;
  core_.book(a.id);
  book_path(a.id, path, a.bound);
  return Booked::done;
}

// Takes the place of a lower task: true. Else drops lower ones that stand in the way at later stages, until the task is
// in time; `path` is what it has then.
bool ReservationScheduler::displace(const Arrival& a, TimeNs room, PathPlan& path) noexcept {
  const TimeNs before = path.end_ns + room > a.bound ? kNever : path.legs[0].start_ns;
  if (take_place(view_.queues[a.queue], a.id, before, a.bound)) return true;
  const auto search = [&] { path = earliest_path(path.route, a.items, a.bound, a.joins); };
  search();
  for (std::uint32_t n = 0; n < kEvicted && path.end_ns + room > a.bound && evict(path, a.id); ++n) search();
  return false;
}

// The route with the least waiting that is in time, for so many items or for the batch that it is entered with.
PathPlan ReservationScheduler::min_wait(const Arrival& a, bool whole) const noexcept {
  PathPlan best;
  for (RouteId r : view_.topology().modules[view_.queues[a.queue].module].routes) {
    const std::uint32_t n = whole ? std::max(a.items, whole_[r].items) : a.items;
    if (!fits(view_.route(r), n)) continue;
    const PathPlan plan = earliest_path(r, n, a.bound, a.joins && n == a.items, n > a.items);
    if (plan.end_ns == kNever) continue;
    const bool in_time = plan.end_ns <= a.bound, had = best.end_ns <= a.bound;
    if (best.end_ns == kNever || (in_time != had ? in_time : plan.wait_ns < best.wait_ns)) best = plan;
  }
  return best;
}

// Where single tasks would not carry the route's rate: as many as it needs together. Who comes alone waits for the
// others, no longer than is safe. Booked::late: alone, on the path that `plan` is then.
ReservationScheduler::Booked ReservationScheduler::book_whole(QueueId at, TaskId head, PathPlan& plan,
                                                              TimeNs bound) noexcept {
  const TaskQueue& queue = view_.queues[at];
  const RouteId route = plan.route;
  std::uint32_t n = whole_[route].items;
  if (n == 1) return Booked::late;
  if (queue.items < n) {
    // Until its partition is free waiting costs nothing.
    const TimeNs idle = view_.now + plan.wait_ns;
    const TimeNs last =
        std::min(std::max(task(head).queued_ns + whole_[route].wait_ns, idle), idle + bound - plan.end_ns);
    if (last > view_.now) {
      core_.wake(at, last);
      return Booked::wait;
    }
    n = queue.items;
    plan = earliest_path(route, n, bound, n == 1, n > 1);
    if (n == 1) return Booked::late;
  }
  book_together(queue, head, plan, n, true);
  return Booked::done;
}

// Tries the unsent first-stage batches of the module, soonest first.
bool ReservationScheduler::grow_some(const TaskQueue& queue, TaskId id, TimeNs bound) noexcept {
  for (RouteId r : view_.topology().modules[queue.module].routes) {
    const StageSpec& stage = view_.route(r).stages.front();
    const auto& list = book(r, 0).unsent.list();
    TimeNs last_start = view_.now;
    PartitionId last_partition = kNone;
    std::uint32_t tries = 0;
    for (std::size_t at = 0; at < list.size() && tries < kGrowTries; ++at) {
      const BookingId soonest = list[at].id;
      const Booking& c = bookings_[soonest];
      const bool after = c.start_ns > last_start ||
                         (c.start_ns == last_start && last_partition != kNone && c.partition > last_partition);
      const std::uint32_t items = c.items + task(id).items;
      if (!after || !fits(stage, items) || may_grow_[r][items] == 0 || !usable(c.partition)) continue;
      const TimeNs end = c.start_ns + duration(view_.route(r), 0, items);
      if (c.next != kNone && bookings_[c.next].start_ns < end) continue;  // another stands behind it
      last_start = c.start_ns;
      last_partition = c.partition;
      ++tries;
      if (!grow({.partition = last_partition, .join = soonest}, id, bound)) continue;
      core_.book(id);
      return true;
    }
  }
  return false;
}

// Whether some task of a lower level may lose its place.
bool ReservationScheduler::any_lower(TaskId id) const noexcept {
  return std::any_of(unsent_of_.begin(), unsent_of_.begin() + task(id).level, [](std::uint32_t n) { return n > 0; });
}

// Where a later stage is the narrow one, what was begun stands in the way: drops the first lower task that is booked
// there no sooner than this one could come.
bool ReservationScheduler::evict(const PathPlan& plan, TaskId id) noexcept {
  for (std::size_t k = view_.route(plan.route).stages.size(); k-- > 1;) {
    const auto& list = book(plan.route, k).unsent.list();
    auto at = std::ranges::lower_bound(list, plan.legs[k].arrive_ns, {}, &Unsent::Entry::start_ns);
    for (std::uint32_t n = 0; n < kPlaces && at != list.end() && at->start_ns < plan.legs[k].start_ns; ++n, ++at) {
      for (TaskId t = bookings_[at->id].first; t != kNone; t = itineraries_[t].legs[k].next) {
        if (task(t).level >= task(id).level || task(t).items < task(id).items || task(t).state != TaskState::booked)
          continue;
        core_.drop(t, Reason::overload);
        return true;
      }
    }
  }
  return false;
}

// The place of the first lower task that starts before `start`; of the lowest among them.
bool ReservationScheduler::take_place(const TaskQueue& queue, TaskId id, TimeNs start, TimeNs bound) noexcept {
  TaskId lower = kNone;
  for (RouteId r : view_.topology().modules[queue.module].routes) {
    const auto& list = book(r, 0).unsent.list();
    auto at = std::ranges::upper_bound(list, view_.now, {}, &Unsent::Entry::start_ns);
    for (std::uint32_t n = 0; n < kPlaces && at != list.end() && at->start_ns < start; ++n, ++at) {
      for (TaskId t = bookings_[at->id].first; t != kNone; t = itineraries_[t].legs[0].next) {
        const bool can =
            task(t).level < task(id).level && task(t).items >= task(id).items && task(t).state == TaskState::booked;
        if (can && (lower == kNone || task(t).level < task(lower).level)) lower = t;
      }
    }
  }
  if (lower == kNone) return false;
  const BookingId place = itineraries_[lower].legs[0].booking;
  const std::uint32_t generation = bookings_.generation(place);
  const Booking was = bookings_[place];
  unbook(lower, 0);
  bool done = false;
  if (bookings_.valid(place, generation)) {
    done = grow({.partition = was.partition, .join = place}, id, bound);
    if (done) core_.book(id);
  } else {
    const PathPlan plan = earliest_path(was.route, task(id).items, bound, !view_.lone(id));
    done = plan.end_ns <= bound;
    if (done) {
      core_.book(id);
      book_path(id, plan, bound);
    }
  }
  core_.unbook(lower);
  return done;
}

}  // namespace leat::core
