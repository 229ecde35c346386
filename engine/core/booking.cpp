// When lanes book, when bookings are sent, and what follows the end of a stage or the loss of a partition: reservation.h.
#include <algorithm>

#include "engine/core/state.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kGrowTries = 12;      // unsent batches looked at before a task is booked alone
constexpr std::int64_t kLostTasks = 128;      // what a module loses is smoothed over so many tasks
constexpr std::int64_t kLostLittle = 100'000;  // ppm: up to here bursts are taken as they come
constexpr std::int64_t kLostMuch = 150'000;   // from here on a waiting batch is left all its room to grow
constexpr std::int64_t kLostAfter = 20'000;   // from here on of a later module, those before it leave it all it needs

bool fits(const RouteSpec& route, std::uint32_t items) {
  return std::all_of(route.stages.begin(), route.stages.end(), [&](const StageSpec& s) { return fits(s, items); });
}

}  // namespace

// ---- what a lane does with its tasks ----

void Scheduler::State::reserve_lane(LaneId id) noexcept {
  Lane& lane = lanes[id];
  Reservations& rv = *reservations;
  const std::uint32_t least = kMaxStages * (kGrowItems + 1);
  for (RouteId r : topology.modules[lane.module].routes) {
    for (const StageSpec& stage : topology.routes[r].stages) {
      for (PartitionId p : stage.pool) {
        rv.partitions[p].expire(now);
        if (topology.hosts.empty()) continue;
        rv.up[topology.partitions[p].host].expire(now);
        rv.down[topology.partitions[p].host].expire(now);
      }
    }
  }
  while (lane.tasks > 0 && rv.bookings.left() > std::max<std::uint32_t>(least, kMaxBatch)) {
    const TaskId t = next_task(lane, false);
    const TimeNs bound = tasks[t].give_up_ns == kNever ? kNever : tasks[t].deadline_ns - modules[lane.module].after_least_ns - room_after(lane.module);
    const Booked done = policy.batch == Batching::search_down ? book_as_printed(lane, t, bound)
                        : policy.batch == Batching::reactive  ? book_entry(lane, t, bound)
                                                              : book_alone(lane, t, bound);
    if (done == Booked::wait) return;
    std::int64_t& lost = rv.lost_ppm[lane.module];
    lost += ((done == Booked::late ? 1'000'000 : 0) - lost) / kLostTasks;
    if (done == Booked::late) drop_request(tasks[t].request, Outcome::dropped, Reason::unreachable, lane.module);
  }
}

// What later modules need beside their least time for their batches to grow, and for one batch to be ahead; as far as they lose tasks.
TimeNs Scheduler::State::room_after(ModuleId module) const noexcept {
  TimeNs most = 0;
  if (!books_ahead()) return 0;
  for (ModuleId next : topology.modules[module].after) {
    TimeNs room = 0;
    for (RouteId r : topology.modules[next].routes) room = std::max(room, 2 * reservations->growth_ns[r] + modules[next].least_ns);
    most = std::max(most, room * std::min(reservations->lost_ppm[next], kLostAfter) / kLostAfter + room_after(next));
  }
  return most;
}

// Who waits, waits in a batch that others will join. A queue filled up to the last moment is one of batches that cannot grow any
// more, and stays so: while a module loses tasks, those it admits must be in time even when all batches on their way have grown.
TimeNs Scheduler::State::room_to_grow(RouteId route) const noexcept {
  const std::int64_t lost = reservations->lost_ppm[topology.routes[route].module];
  return reservations->growth_ns[route] * std::clamp<std::int64_t>(lost - kLostLittle, 0, kLostMuch - kLostLittle) / (kLostMuch - kLostLittle);
}

// Ours: the task alone, on the route with the least waiting that is in time; before it would wait, a batch may grow.
Scheduler::State::Booked Scheduler::State::book_alone(Lane& lane, TaskId id, TimeNs bound) noexcept {
  const std::uint32_t items = tasks[id].items;
  PathPlan best;
  bool any = false;
  for (RouteId r : topology.modules[lane.module].routes) {
    if (!fits(topology.routes[r], items)) continue;
    any = true;
    const PathPlan plan = probe_path(r, items, bound, true, true);
    if (plan.end_ns == kNever) continue;
    const bool in_time = plan.end_ns <= bound, had = best.end_ns <= bound;
    if (best.end_ns == kNever || (in_time != had ? in_time : plan.wait_ns < best.wait_ns)) best = plan;
  }
  if (best.end_ns == kNever) return any ? Booked::wait : Booked::late;  // nobody is up; or nobody can hold so many items
  const TimeNs room = best.wait_ns > 0 && bound != kNever ? room_to_grow(best.route) : 0;
  const bool late = best.end_ns + room > bound;
  if (late || best.legs[0].start_ns > now) {
    if (grow_some(lane, id, bound)) return Booked::done;
    if (!late) best = probe_path(best.route, items, bound, true, true);  // as before, but a booking that was put back has another id
  }
  const bool through = topology.routes[best.route].stages.size() > 2 && best.wait_ns > 0;
  if (through ? !book_through(id, best, bound, bound - room) : late) return Booked::late;
  dequeue(id);
  tasks[id].lane = kNone;
  if (!through) book_path(id, best, bound);
  tasks[id].state = TaskState::booked;
  return Booked::done;
}

// Tries the unsent first-stage batches of the module, soonest first.
bool Scheduler::State::grow_some(Lane& lane, TaskId id, TimeNs bound) noexcept {
  Reservations& rv = *reservations;
  for (RouteId r : topology.modules[lane.module].routes) {
    const StageSpec& stage = topology.routes[r].stages.front();
    TimeNs last_start = now;
    PartitionId last_partition = kNone;
    for (std::uint32_t tries = 0; tries < kGrowTries; ++tries) {
      BookingId soonest = kNone;
      for (PartitionId p : stage.pool) {
        if (!usable(p)) continue;
        for (BookingId b = rv.first[p]; b != kNone; b = rv.bookings[b].next) {
          const Booking& c = rv.bookings[b];
          const bool after = c.start_ns > last_start || (c.start_ns == last_start && last_partition != kNone && p > last_partition);
          if (c.state != BookingState::planned || c.route != r || c.stage != 0 || c.start_ns <= now || !after) continue;
          const std::uint32_t items = c.items + tasks[id].items;
          if (!fits(stage, items) || rv.may_grow[r][items] == 0) continue;
          const TimeNs end = c.start_ns + duration(topology.routes[r], 0, items);
          if (c.next != kNone && rv.bookings[c.next].start_ns < end) continue;  // another stands behind it
          if (soonest == kNone || c.start_ns < rv.bookings[soonest].start_ns) soonest = b;
          break;  // later ones of this partition come after
        }
      }
      if (soonest == kNone) break;
      last_start = rv.bookings[soonest].start_ns;
      last_partition = rv.bookings[soonest].partition;
      if (!grow({.partition = last_partition, .join = soonest}, id, bound)) continue;
      dequeue(id);
      tasks[id].lane = kNone;
      tasks[id].state = TaskState::booked;
      return true;
    }
  }
  return false;
}

// PPipe, Algorithm 1: the pipeline with the least waiting at its planned batch; then the largest batch from there down that is in
// time for the oldest; then drop, wait or dispatch.
Scheduler::State::Booked Scheduler::State::book_as_printed(Lane& lane, TaskId head, TimeNs bound) noexcept {
  PathPlan plan;
  for (RouteId r : topology.modules[lane.module].routes) {
    const PathPlan p = probe_path(r, topology.routes[r].batch, bound, false, false);
    if (p.wait_ns < plan.wait_ns) plan = p;
  }
  if (plan.end_ns == kNever) return Booked::wait;
  const RouteId route = plan.route;
  std::uint32_t n = topology.routes[route].batch;
  if (n < tasks[head].items) return Booked::late;
  while (plan.end_ns > bound) {
    if (--n < tasks[head].items) return Booked::late;
    plan = probe_path(route, n, bound, false, false);
  }
  if (lane.items < n) {
    const PathPlan more = probe_path(route, lane.items + 1, bound, false, false);
    const TimeNs last_safe = bound == kNever ? now : now + (bound - more.end_ns) + more.wait_ns;
    if (last_safe > now) {
      lane.wake_ns = last_safe;
      want_timer(last_safe);
      return Booked::wait;
    }
    n = lane.items;
    plan = probe_path(route, n, bound, false, false);
    if (plan.end_ns > bound) return Booked::late;
  }
  const std::size_t stages = topology.routes[route].stages.size();
  std::array<TimeNs, kMaxStages> depart{}, each{};  // on the links the members follow one another
  for (std::size_t k = 1; k < stages; ++k) {
    depart[k] = plan.legs[k].depart_ns;
    each[k] = (plan.legs[k].arrive_ns - plan.legs[k].depart_ns) / n;
  }
  std::uint32_t booked = 0;
  for (TaskId t = head; t != kNone && booked + tasks[t].items <= n; t = next_task(lane, false)) {
    for (std::size_t k = 0; k < stages; ++k) {
      if (booked > 0) plan.legs[k].join = reservations->itineraries[head].legs[k].booking;
      plan.legs[k].depart_ns = depart[k];
      plan.legs[k].arrive_ns = depart[k] += each[k] * tasks[t].items;
    }
    booked += tasks[t].items;
    dequeue(t);
    tasks[t].lane = kNone;
    book_path(t, plan, bound);
  }
  return Booked::done;
}

// ---- sending, passing on, losing ----

// Feedback: the partition will not be free before `at`. What is booked there until then moves back, so that its timeline tells
// the truth and waiting batches can still grow.
void Scheduler::State::postpone(PartitionId p, TimeNs at) noexcept {
  if (!books_ahead()) return;
  Reservations& rv = *reservations;
  Timeline& timeline = rv.partitions[p];
  for (BookingId id = rv.first[p]; id != kNone; id = rv.bookings[id].next) {
    Booking& b = rv.bookings[id];
    if (b.state != BookingState::planned) continue;
    if (b.start_ns >= at) return;
    const TimeNs length = b.end_ns - b.start_ns;
    insist(timeline.reserve(std::max(b.end_ns, at), at + length), "a timeline is full");
    b.start_ns = at;
    b.end_ns = at += length;
  }
}

// Sends the first booking of the partition whose time has come and whose features are made; gives up what became too late.
void Scheduler::State::send_due(PartitionId p) noexcept {
  Reservations& rv = *reservations;
  for (BookingId id = rv.first[p]; id != kNone;) {
    Booking& b = rv.bookings[id];
    const BookingId next = b.next;
    if (b.due_ns > now) {
      want_timer(b.start_ns);
      return;
    }
    if (b.state == BookingState::sent && b.end_ns < now && books_ahead()) {  // it runs over, who knows how long
      move_end(b, now + (b.end_ns - b.start_ns) / 8 + 1);
      postpone(p, b.end_ns);
    } else if (b.state == BookingState::planned) {
      const std::uint32_t generation = rv.bookings.generation(id);
      drop_late(id);
      const bool live = rv.bookings.valid(id, generation);
      if (live && b.unmade == 0 && partitions[p].up && partitions[p].held <= policy.queue_ahead && batches.left() > 0) {
        send(id);
        return;
      }
      if (live && b.start_ns > now) want_timer(b.start_ns);
      if (live && b.bound_ns > now && b.bound_ns != kNever) want_timer(b.bound_ns);
    }
    id = next;
  }
}

void Scheduler::State::drop_late(BookingId id) noexcept {
  Reservations& rv = *reservations;
  if (policy.drop == Drop::none) return;
  const Booking& b = rv.bookings[id];
  const RouteSpec& route = topology.routes[b.route];
  TimeNs rest = 0;
  for (std::size_t k = b.stage + 1; k < route.stages.size(); ++k) rest += duration(route, k, 1);
  const std::uint32_t generation = rv.bookings.generation(id);
  for (TaskId t = b.first; t != kNone;) {
    const TimeNs end = now + duration(route, b.stage, b.items) + rest;
    // A task whose earlier stage still runs is looked at again when that has ended.
    if (tasks[t].give_up_ns == kNever || tasks[t].state != TaskState::booked || end <= tasks[t].deadline_ns) {
      t = rv.itineraries[t].legs[b.stage].next;
      continue;
    }
    drop_request(tasks[t].request, Outcome::dropped, Reason::unreachable, route.module);
    if (!rv.bookings.valid(id, generation)) return;  // it went with its last member
    t = b.first;  // a request's other tasks went too
  }
}

void Scheduler::State::send(BookingId id) noexcept {
  Reservations& rv = *reservations;
  Booking& booking = rv.bookings[id];
  const std::uint32_t batch = batches.take();
  const TimeNs run = duration(topology.routes[booking.route], booking.stage, booking.items);
  Batch& b = batches[batch];
  b = Batch{};
  b.state = BatchState::live;
  b.route = booking.route;
  b.lane = modules[topology.routes[booking.route].module].first_lane;
  b.stage = booking.stage;
  b.booking = id;
  b.path[b.stage] = booking.partition;
  b.sent_ns = b.start_ns = b.started_ns = now;
  b.stage_end_ns = b.expected_end_ns = now + run;
  for (TaskId t = booking.first; t != kNone; t = rv.itineraries[t].legs[b.stage].next) {
    Task& task = tasks[t];
    task.state = TaskState::placed;
    task.batch = batch;
    task.next_in_batch = b.list.first;  // members stand newest first; a batch is oldest first
    b.list.first = t;
    if (b.list.last == kNone) b.list.last = t;
    ++b.list.tasks;
    b.list.items += task.items;
    b.priority = std::max(b.priority, task.priority);
    ++requests[task.request].placed;
    requests[task.request].started = true;
    if (b.stage == 0) counters.modules[task.module].queue_ns_sum += static_cast<std::uint64_t>(now - task.queued_ns);
  }
  booking.state = BookingState::sent;
  if (booking.start_ns > now) {  // it had been postponed too far
    Timeline& timeline = rv.partitions[booking.partition];
    insist(timeline.release(booking.start_ns, booking.end_ns), "a timeline is full");
    booking.start_ns = booking.end_ns = now;
  }
  if (now + run > booking.end_ns) move_end(booking, now + run);  // feedback: it starts later than booked
  postpone(booking.partition, booking.end_ns);
  ModuleCounters& mc = counters.modules[topology.routes[booking.route].module];
  ++mc.batches;
  mc.items += b.list.items;
  Partition& p = partitions[booking.partition];
  ++p.held;
  p.free_ns = std::max(p.free_ns, now + run);
  ++counters.partitions[booking.partition].batches;
  ++counters.partitions[booking.partition].running;
  Action a;
  a.kind = ActionKind::dispatch;
  a.batch = {batch, batches.generation(batch)};
  push(a);
}

// A stage that is not the last has ended: its features go where each task is booked next.
void Scheduler::State::pass_on(std::uint32_t id) noexcept {
  Reservations& rv = *reservations;
  const std::uint32_t k = batches[id].stage;
  const PartitionId from = batches[id].path[k];
  for (TaskId t = batches[id].list.first; t != kNone;) {
    Task& task = tasks[t];
    const TaskId next = task.next_in_batch;
    const std::uint32_t request = task.request;
    --requests[request].placed;
    task.batch = kNone;
    task.state = TaskState::booked;
    rv.itineraries[t].legs[k] = Leg{};
    const bool alive = requests[request].doom == Outcome::pending;
    const Leg& leg = rv.itineraries[t].legs[k + 1];
    const bool lost = leg.booking == kNone && !(policy.batch == Batching::reactive && alive && book_next(t, batches[id].route, k + 1));
    if (!alive) {
      if (leg.booking != kNone) --rv.bookings[leg.booking].unmade;
      release(t);
      settle(request);
    } else if (lost) {
      enqueue(t);  // its way was lost meanwhile: once more from the start
    } else {
      Booking& to = rv.bookings[leg.booking];
      if (--to.unmade == 0) mark_partition(to.partition);
      Action a;
      a.kind = ActionKind::transfer;
      a.request = {request, requests.generation(request)};
      a.token = requests[request].token;
      a.route = batches[id].route;
      a.module = task.module;
      a.first_stage = k;
      a.from = from;
      a.to = to.partition;
      a.start_ns = std::max(now, leg.depart_ns);
      push(a);
    }
    t = next;
  }
  free_batch(id);
}

// What was booked on a partition that is gone starts again elsewhere while slack allows.
void Scheduler::State::unbook_partition(PartitionId p) noexcept {
  Reservations& rv = *reservations;
  for (BookingId id = rv.first[p]; id != kNone;) {
    if (rv.bookings[id].state != BookingState::planned) {
      id = rv.bookings[id].next;
      continue;
    }
    const TaskId t = rv.bookings[id].first;
    unbook(t, 0);
    id = rv.first[p];  // the list has changed
    if (tasks[t].state != TaskState::booked) continue;  // an earlier stage of it runs: pass_on() finds it a way
    ++counters.retries;
    if (++tasks[t].retries <= kMaxRetries) {
      enqueue(t);
    } else {
      drop_request(tasks[t].request, Outcome::failed, Reason::partition_lost, tasks[t].module);
    }
  }
}

TimeNs Scheduler::State::earliest_booking() const noexcept {
  TimeNs at = kNever;
  for (BookingId id : reservations->first) {
    for (; id != kNone; id = reservations->bookings[id].next) {
      const Booking& b = reservations->bookings[id];
      if (b.start_ns > now) {
        at = std::min(at, b.start_ns);
        break;
      }
      if (b.state == BookingState::planned && b.bound_ns > now) at = std::min(at, b.bound_ns);
    }
  }
  return at;
}

}  // namespace leat::core
