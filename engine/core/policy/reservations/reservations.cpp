#include "engine/core/policy/reservations/reservations.h"

#include <algorithm>

namespace leat::core {

Reservations::Reservations(const Making& from, const Manner& manner)
    : ComponentScheduler(from.view, from.core, from.component),
      manner_(manner),
      bookings_(from.limits.tasks),
      itineraries_(from.limits.tasks),
      booking_of_(from.limits.batches, kNone),
      timelines_(view_.model, component_),
      links_{.up = {view_.topology().hosts.size(), Timeline(kIntervals, manner.append_only)}, .down = {}},
      planned_ns_(view_.model, component_),
      places_(view_.model, component_),
      looks_(component_.partitions.size()),
      timers_(component_.partitions.size()),
      first_(view_.model, component_) {
  add_plain_queues(from);
  links_.down = links_.up;
  const auto& hosts = view_.topology().hosts;
  for (const LinkSpec& h : hosts) {
    links_.equal = links_.equal && h.up_bytes_per_ns == hosts.front().up_bytes_per_ns &&
                   h.down_bytes_per_ns == hosts.front().down_bytes_per_ns;
  }
  make_books();
  for (PartitionId p : component_.partitions) {
    timelines_[p] = Timeline(kIntervals, manner.append_only);
    first_[p] = kNone;
    planned_ns_[p] = kNever;
  }
}

// Books what waits there; then nobody is to be asked.
ConsumerId Reservations::offer(QueueId id) noexcept {
  const TaskQueue& queue = view_.queues[id];
  forget_past();
  while (queue.tasks > 0 && bookings_.left() > std::max<std::uint32_t>(kMaxStages * kChangedTasks, kMaxBatch)) {
    const TaskId t = next_task(queue);
    const Booked done = book_waiting(id, t, bound_of(queue.module, t));
    if (done == Booked::wait) return kNone;
    was_booked(queue, t, done == Booked::late);
  }
  return kNone;
}

void Reservations::was_booked(const TaskQueue&, TaskId t, bool late) noexcept {
  if (late) core_.drop(t, Reason::unreachable);
}

// ---- sending, passing on, losing ----

// Feedback: the partition will not be free before `at`. What is booked there until then moves back, so that its
// timeline tells the truth and waiting batches can still grow.
void Reservations::postpone(PartitionId p, TimeNs at) noexcept {
  if (!manner_.corrects) return;
  Timeline& timeline = timelines_[p];
  for (BookingId id = first_[p]; id != kNone; id = bookings_[id].next) {
    Booking& b = bookings_[id];
    if (b.state != BookingState::planned) continue;
    if (b.start_ns >= at) break;
    const TimeNs length = b.end_ns - b.start_ns;
    check(timeline.reserve(std::max(b.end_ns, at), at + length), "a timeline is full");
    unlist(id);
    b.start_ns = at;
    b.end_ns = at += length;
    list_unsent(id);
  }
  look_again(p);
}

// Sends the first booking of the partition whose time has come and whose features are made; gives up what became too
// late.
bool Reservations::next(PartitionId p) noexcept {
  for (BookingId id = first_[p]; id != kNone;) {
    Booking& b = bookings_[id];
    const BookingId next = b.next;
    if (b.due_ns > view_.now) {
      core_.wake_at(b.start_ns);
      return false;
    }
    if (b.state == BookingState::sent && b.end_ns < view_.now &&
        manner_.corrects) {  // it runs over, who knows how long
      move_end(b, view_.now + (b.end_ns - b.start_ns) / 8 + 1);
      postpone(p, b.end_ns);
    } else if (b.state == BookingState::planned) {
      const std::uint32_t generation = bookings_.generation(id);
      drop_late(id);
      const bool live = bookings_.valid(id, generation);
      if (live && b.unmade == 0 && view_.idle(p) && view_.machine.batches_left() > 0) {
        send(id);
        return false;  // the rest when that has ended
      }
      if (live && b.start_ns > view_.now) core_.wake_at(b.start_ns);
      if (live && b.bound_ns > view_.now && b.bound_ns != kNever) core_.wake_at(b.bound_ns);
    }
    id = next;
  }
  return false;
}

void Reservations::drop_late(BookingId id) noexcept {
  const Booking& b = bookings_[id];
  if (b.canary) return;
  const RouteSpec& route = view_.route(b.route);
  TimeNs rest = 0;
  for (std::size_t k = b.stage + 1; k < route.stages.size(); ++k) rest += duration(route, k, 1);
  const std::uint32_t generation = bookings_.generation(id);
  for (TaskId t = b.first; t != kNone;) {
    const TimeNs end = view_.now + duration(route, b.stage, b.items) + rest;
    // A task whose earlier stage still runs is looked at again when that has ended.
    if (task(t).give_up_ns == kNever || task(t).state != TaskState::booked || end <= task(t).deadline_ns) {
      t = itineraries_[t].legs[b.stage].next;
      continue;
    }
    core_.drop(t, Reason::unreachable);
    if (!bookings_.valid(id, generation)) return;  // it went with its last member
    t = b.first;                                   // a request's other tasks went too
  }
}

void Reservations::send(BookingId id) noexcept {
  Booking& booking = bookings_[id];
  const RouteSpec& route = view_.route(booking.route);
  const TimeNs run = duration(route, booking.stage, booking.items), now = view_.now;
  std::array<TaskId, kMaxBatch> members;  // they stand newest first; a batch is oldest first
  std::size_t n = booking.tasks;
  for (TaskId t = booking.first; t != kNone; t = itineraries_[t].legs[booking.stage].next) {
    members[--n] = t;
    --unsent_of_[task(t).level];
  }
  unlist(id);
  booking.state = BookingState::sent;
  const std::uint32_t batch =
      core_.send(booking.route, booking.stage, booking.partition, {members.data(), booking.tasks}, run);
  booking_of_[batch] = id;
  sent(booking, batch);
  if (booking.start_ns > now) {  // it had been postponed too far
    check(timelines_[booking.partition].release(booking.start_ns, booking.end_ns), "a timeline is full");
    booking.start_ns = booking.end_ns = now;
  }
  look_again(booking.partition);
  if (now + run > booking.end_ns) move_end(booking, now + run);  // feedback: it starts later than booked
  postpone(booking.partition, booking.end_ns);
}

// ---- what the core tells ----

void Reservations::freed(std::uint32_t batch) noexcept {
  if (booking_of_[batch] == kNone) return;
  close_booking(booking_of_[batch]);
  booking_of_[batch] = kNone;
}

void Reservations::forget(TaskId t) noexcept {
  unbook(t, 0);
  itineraries_[t] = Itinerary{};
}

// A stage that is not the last has ended: the task's features go where it is booked next.
bool Reservations::passed(TaskId t, std::uint32_t id, bool alive) noexcept {
  const Batch& batch = view_.machine.batch(id);
  const std::uint32_t k = batch.stage;
  itineraries_[t].legs[k] = Leg{};
  const Leg& leg = itineraries_[t].legs[k + 1];
  if (!alive) {
    if (leg.booking != kNone) --bookings_[leg.booking].unmade;
    return true;
  }
  if (leg.booking == kNone && !book_next(t, batch)) return false;
  Booking& to = bookings_[leg.booking];
  if (--to.unmade == 0) core_.ask(to.partition);
  core_.transfer(t, batch.route, k, batch.path[k], to.partition, std::max(view_.now, leg.depart_ns));
  return true;
}

// What was booked on a partition that is gone starts again elsewhere while slack allows. Where one comes, everything
// that waits is looked at: later stages have no consumers of their own.
void Reservations::partition(PartitionId p, bool up) noexcept {
  if (up) {
    const Partition& now_held = view_.machine.partition(p);  // by the plan before this one
    if (now_held.held > 0) (void)timelines_[p].reserve(view_.now, now_held.free_ns);
    look_again(p);
    for (ModuleId m : component_.modules) core_.ask_queue(view_.queues.first(m));
    return;
  }
  for (BookingId id = first_[p]; id != kNone;) {
    if (bookings_[id].state != BookingState::planned) {
      id = bookings_[id].next;
      continue;
    }
    const TaskId t = bookings_[id].first;
    unbook(t, 0);
    id = first_[p];  // the list has changed
    if (task(t).state == TaskState::booked)
      core_.retry(t);  // else an earlier stage of it runs: passed() finds it a way
  }
}

// Every booking stands in its partition's list and has the members that name it.
void Reservations::audit() const {
  std::array<std::uint32_t, kLevels> unsent_tasks{};
  for (PartitionId p : component_.partitions) {
    BookingId before = kNone;
    for (BookingId id = first_[p]; id != kNone; before = id, id = bookings_[id].next) {
      const Booking& b = bookings_[id];
      check(b.state != BookingState::free && b.partition == p && b.previous == before, "a partition's bookings");
      if (b.state != BookingState::planned) continue;
      std::uint32_t n = 0, items = 0;
      for (TaskId t = b.first; t != kNone && n <= b.tasks; t = itineraries_[t].legs[b.stage].next, ++n) {
        check(itineraries_[t].legs[b.stage].booking == id && task(t).state != TaskState::free, "a booking's member");
        items += task(t).items;
        ++unsent_tasks[task(t).level];
      }
      check(n == b.tasks && n > 0 && items == b.items, "a booking's members");
      const auto& list = book(b.route, b.stage).unsent.list();
      check(list.size() == kCandidates || std::ranges::binary_search(list, entry_of(id)), "an unsent booking");
    }
    for (const Place& place : places_[p]) {
      const TimeNs gap = books_[place.stage].bounds[place.at].gap_ns;
      check(gap <= timelines_[p].earliest(std::min(view_.now, gap), 1), "a partition has a gap before its gap");
    }
    const TimeNs timer = timers_[view_.model.slot_of_partition(p)];
    check(timer <= view_.now || timer == timer_of(p), "a partition's timer");
  }
  check(unsent_tasks == unsent_of_, "how many tasks of a level are booked");
}

void Reservations::visit_state(Snapshot& state) {
  state(bookings_);
  view_.tasks.each_taken([&](TaskId t) { state(itineraries_[t]); });
  state(booking_of_, timelines_, links_, planned_ns_, looks_, timers_, forgot_ns_, books_, first_, unsent_of_);
}

}  // namespace leat::core
