// Queues of tasks: in, out, and which lanes and partitions have something new to look at.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {

void Scheduler::State::enqueue(TaskId id) noexcept {
  Task& t = tasks[id];
  ModuleState& m = modules[t.module];
  if (m.arrivals.roll(now)) update_load(t.module);
  m.arrivals.add(0, t.items);
  t.serial = ++serial;
  t.lane = m.lanes == 1 ? m.first_lane : place(t.module, t);
  t.state = TaskState::queued;
  Lane& lane = lanes[t.lane];
  lane.queue[t.priority].insert(tasks.data(), id);
  lane.arrivals[t.priority].push(tasks.data(), id);
  lane.classes |= 1u << t.priority;
  ++lane.tasks;
  lane.items += t.items;
  m.queued_items += t.items;
  ApplicationState& a = applications[m.application];
  if (a.queued_items == 0 && now - a.emptied_ns >= a.gap_ns) {
    a.backlog_ns = now;
    a.burst = false;
  }
  a.queued_items += t.items;
  ++counters.modules[t.module].queued;
  if (policy.binding == Binding::early) {
    const Server& s = servers[lane.first_server];
    lane.queued_run_ns += s.run_ns[std::min(t.items, topology.routes[s.route].batch)];
  }
  if (t.give_up_ns != kNever) want_timer(t.deadline_ns > now ? t.deadline_ns : t.give_up_ns);
  mark(t.lane);
}

void Scheduler::State::dequeue(TaskId id) noexcept {
  Task& t = tasks[id];
  Lane& lane = lanes[t.lane];
  lane.queue[t.priority].erase(tasks.data(), id);
  lane.arrivals[t.priority].erase(tasks.data(), id);
  if (lane.queue[t.priority].empty()) lane.classes &= ~(1u << t.priority);
  --lane.tasks;
  lane.items -= t.items;
  modules[t.module].queued_items -= t.items;
  ApplicationState& a = applications[modules[t.module].application];
  a.queued_items -= t.items;
  if (a.queued_items == 0) a.emptied_ns = now;
  --counters.modules[t.module].queued;
  if (policy.binding == Binding::early) {
    const Server& s = servers[lane.first_server];
    lane.queued_run_ns -= s.run_ns[std::min(t.items, topology.routes[s.route].batch)];
  }
}

void Scheduler::State::take(Lane& lane, TaskId id) noexcept {
  dequeue(id);
  Task& t = tasks[id];
  t.state = TaskState::queued;  // still ours: not sent
  t.lane = kNone;
  t.taken_ns = now;
  t.next_in_batch = kNone;
  t.batch = static_cast<std::uint32_t>(&lane - lanes.data());  // the lane it forms at, until it is sent
  (lane.forming.last == kNone ? lane.forming.first : tasks[lane.forming.last].next_in_batch) = id;
  lane.forming.last = id;
  ++lane.forming.tasks;
  lane.forming.items += t.items;
}

void Scheduler::State::release(TaskId id) noexcept {
  Task& t = tasks[id];
  if (t.state == TaskState::booked) {
    unbook(id, 0);
  } else if (t.state == TaskState::queued && t.lane != kNone) {
    dequeue(id);
  } else if (t.state == TaskState::queued) {
    TaskList& list = lanes[t.batch].forming;
    TaskId previous = kNone;
    TaskId at = list.first;
    while (at != id) {
      previous = at;
      at = tasks[at].next_in_batch;
    }
    (previous == kNone ? list.first : tasks[previous].next_in_batch) = t.next_in_batch;
    if (list.last == id) list.last = previous;
    --list.tasks;
    list.items -= t.items;
  }
  Request& r = requests[t.request];
  (t.previous_of_request == kNone ? r.tasks : tasks[t.previous_of_request].next_of_request) = t.next_of_request;
  if (t.next_of_request != kNone) tasks[t.next_of_request].previous_of_request = t.previous_of_request;
  t.state = TaskState::free;
  tasks.give(id);
}

void Scheduler::State::mark(LaneId id) noexcept {
  if (lanes[id].dirty) return;
  lanes[id].dirty = true;
  dirty_lanes.push_back(id);
}

void Scheduler::State::mark_partition(PartitionId id) noexcept {
  if (partitions[id].dirty) return;
  partitions[id].dirty = true;
  dirty_partitions.push_back(id);
}

void Scheduler::State::set_idle(PartitionId id) noexcept {
  const Partition& p = partitions[id];
  const bool idle = p.up && p.held <= policy.queue_ahead;
  for (ServerId s : p.servers) {
    const Lane& lane = lanes[servers[s].lane];
    const std::uint32_t bit = s - lane.first_server;
    std::uint64_t& word = idle_bits[lane.idle_words + bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    word = idle ? word | mask : word & ~mask;
  }
}

ServerId Scheduler::State::idle_server(const Lane& lane) const noexcept {
  for (std::uint32_t w = 0; w * 64 < lane.servers; ++w) {
    const std::uint64_t word = idle_bits[lane.idle_words + w];
    if (word != 0) return lane.first_server + w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return kNone;
}

TimeNs Scheduler::State::earliest_timer() const noexcept {
  TimeNs at = kNever;
  for (const Lane& lane : lanes) {
    at = std::min(at, lane.wake_ns);
    for (std::uint32_t left = lane.classes; left != 0; left &= left - 1) {
      const DeadlineQueue& queue = lane.queue[static_cast<std::size_t>(std::countr_zero(left))];
      // What is past its deadline but still worth running comes first; the first task before its deadline bounds the rest.
      for (TaskId t = queue.front(); t != kNone; t = tasks[t].after) {
        if (tasks[t].give_up_ns == kNever && tasks[t].deadline_ns <= now) continue;
        if (tasks[t].deadline_ns > now) {
          at = std::min({at, tasks[t].deadline_ns, tasks[t].give_up_ns});
          break;
        }
        at = std::min(at, tasks[t].give_up_ns);
      }
    }
  }
  if (reservations != nullptr) at = std::min(at, earliest_booking());
  for (const Partition& p : partitions) {
    if (p.deferred_until_ns > now) at = std::min(at, p.deferred_until_ns);
  }
  return at;
}

}  // namespace leat::core
