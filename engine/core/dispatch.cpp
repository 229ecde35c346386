// Who is asked, when, and the clock.
#include <algorithm>
#include <bit>

#include "engine/core/core.h"

namespace leat::core {

void Scheduler::State::touch(TimeNs at) noexcept {
  if (at < now) {
    ++ledger.count().clock_steps_back;
  } else {
    now = at;
  }
}

// Looks at whatever became free or got tasks since the last event, until nothing more can start. Called once at the end
// of each event, so that a whole upstream batch has arrived before a partition chooses.
void Scheduler::State::dispatch() noexcept {
  if (coordination != nullptr) {
    for (const TaskId task : coordination->due(now)) enter_gate(task);
  }
  for (;;) {
    if (!plan->dirty_queues.empty()) {
      const QueueId id = plan->dirty_queues.back();
      plan->dirty_queues.pop_back();
      plan->queues.change(id).dirty = false;
      const TaskQueue& queue = plan->queues[id];
      ComponentScheduler& scheduler = of_module(queue.module);
      ConsumerId refused = kNone;
      while (refused == kNone && (queue.tasks > 0 || queue.forming.tasks > 0)) {
        const ConsumerId s = scheduler.offer(id);
        if (s == kNone) break;
        if (!scheduler.next(plan->queues.consumer(s).partition)) refused = s;
      }
      if (queue.tasks > 0 || queue.forming.tasks > 0) scheduler.leftover(id, refused);
    } else if (!dirty_partitions.empty()) {
      const PartitionId id = dirty_partitions.back();
      dirty_partitions.pop_back();
      partition_dirty[id] = 0;
      const ComponentId c = plan->model.component_of_partition(id);
      while (c != kNone && plan->schedulers[c]->next(id)) {
      }
    } else if (!open_gate()) {
      return;
    }
  }
}

// Every coordinated stream whose plan is new is told.
void Scheduler::State::coordinate() noexcept {
  coordination->tick(now);
  for (const StreamId stream : coordination->changed()) {
    Action told;
    told.kind = ActionKind::schedule;
    told.stream = stream;
    actions.push(told);
  }
}

void Scheduler::State::advance() noexcept {
  if (coordination != nullptr) coordinate();
  if (watch_ns <= now) watch();
  if (timer > now) {  // only the watch was due
    dispatch();
    return;
  }
  expire_gate();
  for (QueueId id = 0; id < plan->queues.size(); ++id) {
    TaskQueue& queue = plan->queues.change(id);
    if (queue.classes != 0) expire(id);
    if (queue.wake_ns <= now) {
      queue.wake_ns = kNever;
      mark(id);
    }
  }
  for (PartitionId id = 0; deferred > 0 && id < machine.partitions(); ++id) {
    const TimeNs until = machine.partition(id).deferred_until_ns;
    if (until == 0 || until > now) continue;
    keep_idle(id, 0);
    mark_partition(id);
  }
  for (const auto& scheduler : plan->schedulers) scheduler->advance();
  dispatch();
  timer = earliest_timer();
}

TimeNs Scheduler::State::earliest_timer() const noexcept {
  TimeNs at = gate_timer();
  for (QueueId l = 0; l < plan->queues.size(); ++l) {
    const TaskQueue& queue = plan->queues[l];
    at = std::min(at, queue.wake_ns);
    for (std::uint32_t left = queue.classes; left != 0; left &= left - 1) {
      const DeadlineQueue& waiting = queue.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
      // What is past its deadline but still worth running comes first; the first task before its deadline bounds the
      // rest.
      for (TaskId t = waiting.front(); t != kNone; t = tasks[t].after) {
        if (tasks[t].give_up_ns == kNever && tasks[t].deadline_ns <= now) continue;
        if (tasks[t].deadline_ns > now) {
          at = std::min({at, tasks[t].deadline_ns, tasks[t].give_up_ns});
          break;
        }
        at = std::min(at, tasks[t].give_up_ns);
      }
    }
  }
  for (const auto& scheduler : plan->schedulers) at = std::min(at, scheduler->next_timer());
  for (PartitionId p = 0; deferred > 0 && p < machine.partitions(); ++p) {
    const TimeNs until = machine.partition(p).deferred_until_ns;
    if (until > now) at = std::min(at, until);
  }
  return at;
}

// What waits past the moment at which it is worthless.
void Scheduler::State::expire(QueueId id) noexcept {
  const TaskQueue& queue = plan->queues[id];
  for (std::uint32_t left = queue.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& waiting = queue.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    for (TaskId t = waiting.front(); t != kNone && tasks[t].deadline_ns <= now;) {
      if (tasks[t].give_up_ns > now) {
        t = tasks[t].after;
        continue;
      }
      bool up = false;
      for (std::uint32_t s = 0; s < queue.consumers && !up; ++s)
        up = machine.partition(plan->queues.consumer(queue.first_consumer + s).partition).up;
      const Reason late = tasks[t].give_up_ns > tasks[t].deadline_ns ? Reason::stale : Reason::expired;
      drop(t, up ? late : Reason::no_partition);
      t = waiting.front();  // siblings may have gone with it
    }
  }
}

void Scheduler::State::mark(QueueId id) noexcept {
  TaskQueue& queue = plan->queues.change(id);
  if (queue.dirty) return;
  queue.dirty = true;
  plan->dirty_queues.push_back(id);
}

void Scheduler::State::mark_partition(PartitionId id) noexcept {
  if (partition_dirty[id] != 0) return;
  partition_dirty[id] = 1;
  dirty_partitions.push_back(id);
}

void Scheduler::State::set_idle(PartitionId id) noexcept {
  const Partition& p = machine.partition(id);
  plan->queues.set_idle(id, p.up && p.held <= policy.queue_ahead);
}

// ---- verbs ----

void Scheduler::State::drop(TaskId task, Reason reason) noexcept {
  check(tasks[task].state == TaskState::queued || tasks[task].state == TaskState::booked,
        "a task is dropped that runs or is gone");
  drop_request(tasks[task].request, Outcome::dropped, reason, tasks[task].module);
}

void Scheduler::State::take(TaskId task) noexcept {
  check(tasks[task].state == TaskState::queued && tasks[task].queue != kNone, "a task is taken that does not wait");
  const QueueId queue = tasks[task].queue;
  dequeue(task);
  tasks[task].taken_ns = now;
  plan->queues.form(tasks, queue, task);
}

void Scheduler::State::book(TaskId task) noexcept {
  check(tasks[task].state == TaskState::queued && tasks[task].queue != kNone, "a task is booked that does not wait");
  dequeue(task);
  tasks[task].queue = kNone;
  tasks[task].state = TaskState::booked;
}

void Scheduler::State::wake(QueueId queue, TimeNs at) noexcept {
  plan->queues.change(queue).wake_ns = at;
  want_timer(at);
}

void Scheduler::State::keep_idle(PartitionId partition, TimeNs until) noexcept {
  TimeNs& kept = machine.change(partition).deferred_until_ns;
  deferred += (until != 0 ? 1u : 0u) - (kept != 0 ? 1u : 0u);
  kept = until;
  if (until != 0) want_timer(until);
}

}  // namespace leat::core
