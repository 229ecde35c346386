// Partitions lost and back, and what becomes of the batches and tasks that they held.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/core/core.h"

namespace leat::core {

// One of these requests may be what ended it. They are tried once more, each alone, so that the second loss convicts
// one. Of several users' each is suspected; one user's frames are his.
bool Scheduler::State::blame(const Batch& batch) noexcept {
  charge(batch, std::max<TimeNs>(0, now - batch.started_ns));
  const std::uint32_t user = user_of(ledger.request(tasks[batch.list.first].request));
  const bool others = users.shares.others(account_of(ledger.request(tasks[batch.list.first].request)), now);
  bool one = true;
  for (TaskId t = batch.list.first; t != kNone; t = tasks[t].next_in_batch) {
    Request& r = ledger.change(tasks[t].request);
    if (std::exchange(r.death, users.losses) != users.losses) ++r.deaths;
    if (others) r.company = Company::nobody;
    one = one && user_of(r) == user;
  }
  for (TaskId t = batch.list.first; t != kNone && !one; t = tasks[t].next_in_batch)
    users.quarantine.suspect(user_of(ledger.request(tasks[t].request)), now);
  if (!one || !others) return false;
  users.quarantine.strike(user, batch.path[batch.stage], now);
  if (!users.quarantine.struck(user, now)) return false;
  for (TaskId t = batch.list.first; t != kNone; t = tasks[t].next_in_batch)
    ledger.change(tasks[t].request).gated = true;
  return users.quarantine.convicted(user, now);
}

void Scheduler::State::give_back(std::uint32_t id) noexcept {
  const ModuleId module = machine.batch(id).module;
  const ModuleModel& m = plan->model.module(module);
  ComponentScheduler* scheduler = scheduler_of(machine.batch(id));
  for (TaskId t = machine.batch(id).list.first; t != kNone;) {
    const TaskId next = tasks[t].next_in_batch;
    Task& task = tasks[t];
    const std::uint32_t request = task.request;
    --ledger.change(request).placed;
    if (scheduler != nullptr) scheduler->forget(t);
    const bool slack = task.give_up_ns == kNever || now + m.min_ns + m.min_after_ns <= task.give_up_ns;
    const bool alive = ledger.request(request).doom == Outcome::pending;
    const Request& r = ledger.request(request);
    const bool again = r.death == users.losses && users.quarantine.convicted(user_of(r), now);
    const bool poison = r.deaths >= kMaxDeaths || (r.deaths > 0 && again);
    if (alive && task.retries < kMaxRetries && slack && !poison) {
      ++task.retries;
      ++ledger.count().retries;
      unsent.insert(t);
      users.gate.over(t);
      enter_gate(t);
    } else {
      release(t);
      if (alive) {
        drop_request(request, Outcome::failed, poison ? Reason::poison : Reason::partition_lost, module);
      } else {
        finish(request);
      }
    }
    t = next;
  }
  free_batch(id);
}

// True: frames of a user who has done so before have ended it.
bool Scheduler::State::partition_lost(PartitionId id) noexcept {
  if (id >= machine.partitions() || !machine.partition(id).up) {
    ++ledger.count().stale_events;
    return false;
  }
  Partition& p = machine.change(id);
  p.up = false;
  p.held = 0;
  p.free_ns = now;
  ++users.losses;
  PartitionCounters& counted = ledger.count().partitions[id];
  ++counted.lost;
  counted.up = false;
  counted.running = 0;
  set_idle(id);
  if (coordination != nullptr) coordination->partition(id, false);
  std::uint32_t convicted = kNone;
  for (std::uint32_t i = 0; i < machine.batches(); ++i) {
    Batch& b = machine.change_batch(i);
    if (b.state == BatchState::free) continue;
    const auto stage = b.path.begin() + b.stage, end = b.path.begin() + b.stages;
    if (*stage == id) {
      if (b.begun) {
        const std::uint32_t user = user_of(ledger.request(tasks[b.list.first].request));
        if (blame(b)) convicted = user;
      }
      give_back(i);
    } else if (b.through && std::find(stage, end, id) != end) {
      b.state = BatchState::condemned;  // another partition still works on it: its end must be proven first
    }
  }
  if (convicted != kNone) drop_waiting(convicted);
  grants.measure(plan->model, plan->paying, machine);
  const ComponentId c = plan->model.component_of_partition(id);
  if (c == kNone) return convicted != kNone;
  plan->schedulers[c]->partition(id, false);
  if (plan->schedulers[c]->binds())
    for (ConsumerId s : plan->queues.of_partition(id)) reassign(plan->queues.consumer(s).queue);
  return convicted != kNone;
}

void Scheduler::State::partition_ready(PartitionId id) noexcept {
  if (id >= machine.partitions() || machine.partition(id).up) {
    ++ledger.count().stale_events;
    return;
  }
  Partition& p = machine.change(id);
  p.up = true;
  p.held = 0;
  p.free_ns = now;
  ledger.count().partitions[id].up = true;
  set_idle(id);
  mark_partition(id);
  grants.measure(plan->model, plan->paying, machine);
  if (coordination != nullptr) coordination->partition(id, true);
  if (const ComponentId c = plan->model.component_of_partition(id); c != kNone)
    plan->schedulers[c]->partition(id, true);
}

// All that waits in the queue is placed anew.
void Scheduler::State::reassign(QueueId id) noexcept {
  TaskQueue& queue = plan->queues.change(id);
  for (TaskId t = queue.forming.first; t != kNone; t = queue.forming.first) {
    queue.forming.first = tasks[t].next_in_batch;
    enqueue(t);
  }
  queue.forming = TaskList{};
  for (std::uint32_t n = queue.tasks; n > 0; --n) {
    const auto top = static_cast<std::size_t>(std::bit_width(queue.classes) - 1);
    const TaskId t = queue.arrivals[top].front();
    dequeue(t);
    enqueue(t);
  }
}

}  // namespace leat::core
