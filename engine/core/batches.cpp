// Batches: sent, started, moved from stage to stage, ended.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

// ---- sent ----

// The task is in the batch now, and its request has work that runs.
void Scheduler::State::place(std::uint32_t batch, TaskId id) noexcept {
  Task& t = tasks[id];
  t.state = TaskState::placed;
  t.batch = batch;
  unsent.erase(id);
  Batch& b = machine.change_batch(batch);
  b.level = std::max(b.level, t.level);
  Request& r = ledger.change(t.request);
  ++r.placed;
  r.started = true;
}

// What the end of a batch looks at is scattered over memory: asked for at once, it comes while the first is worked on.
void Scheduler::State::fetch(const Batch& b) const noexcept {
  const std::size_t n = std::min<std::size_t>(b.list.tasks, kFetched);
  for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(&tasks[b.first[i]].request);
  for (std::size_t i = 0; i < n; ++i) ledger.fetch(tasks[b.first[i]].request);
}

void Scheduler::State::hold(PartitionId p) noexcept {
  ++machine.change(p).held;
  ++ledger.count().partitions[p].running;
  ++ledger.count().partitions[p].batches;
  set_idle(p);
}

std::uint32_t Scheduler::State::start(QueueId queue, ConsumerId consumer, TimeNs start, const Path& path) noexcept {
  TaskQueue& from = plan->queues.change(queue);
  const QueueConsumer& s = plan->queues.consumer(consumer);
  const RouteSpec& route = plan->model.topology().routes[s.route];
  const Partition& first = machine.partition(path.partition[0]);
  check(s.queue == queue && path.partition[0] == s.partition, "a batch is started by another queue's consumer");
  check(from.forming.tasks > 0 && from.forming.items <= route.batch, "a batch is started with no task or too many");
  check(first.up && first.held <= policy.queue_ahead, "a batch is started on a partition that takes none");
  const std::uint32_t id = machine.take_batch();
  Batch& b = machine.change_batch(id);
  b.route = s.route;
  b.module = from.module;
  b.stages = static_cast<std::uint32_t>(route.stages.size());
  b.plan = plan_number;
  ++plan->batches;
  b.list = from.forming;
  b.sent_ns = now;
  b.start_ns = b.started_ns = start;
  b.path = path.partition;
  b.stage_end_ns = path.end_ns[0];
  b.expected_end_ns = path.end_ns[b.stages - 1];
  for (std::uint32_t k = 0; k < b.stages; ++k) machine.change(b.path[k]).free_ns = path.end_ns[k];
  from.forming = TaskList{};
  ModuleCounters& mc = ledger.count().modules[b.module];
  std::size_t n = 0;
  for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch, ++n) {
    place(id, t);
    if (n < kFetched) b.first[n] = t;
    const TimeNs queued = tasks[t].taken_ns - tasks[t].queued_ns;
    mc.queue_ns_sum += static_cast<std::uint64_t>(queued);
    mc.items += tasks[t].rows;
    if (plan->load.samples())
      plan->load.leave({.module = b.module,
                        .at_ns = now,
                        .queue_ns = queued,
                        .wait_ns = start - tasks[t].taken_ns,
                        .run_ns = s.run_ns[std::min(b.list.items, route.batch)]});
  }
  of_module(b.module).started(id);
  plan->load.started(b);
  ++mc.batches;
  hold(b.path[0]);
  Action a;
  a.kind = ActionKind::dispatch;
  a.batch = machine.handle(id);
  actions.push(a);
  return id;
}

std::uint32_t Scheduler::State::send(RouteId route, std::uint32_t stage, PartitionId partition,
                                     std::span<const TaskId> members, TimeNs run) noexcept {
  check(machine.partition(partition).up && machine.partition(partition).held <= policy.queue_ahead,
        "a batch is sent to a partition that takes none");
  const std::uint32_t id = machine.take_batch();
  Batch& b = machine.change_batch(id);
  const RouteSpec& spec = plan->model.topology().routes[route];
  b.route = route;
  b.module = spec.module;
  b.stage = stage;
  b.stages = static_cast<std::uint32_t>(spec.stages.size());
  b.plan = plan_number;
  b.through = false;
  ++plan->batches;
  b.path[stage] = partition;
  b.sent_ns = b.start_ns = b.started_ns = now;
  b.stage_end_ns = b.expected_end_ns = now + run;
  ModuleCounters& mc = ledger.count().modules[b.module];
  std::copy_n(members.begin(), std::min(members.size(), kFetched), b.first.begin());
  for (TaskId t : members) {
    check(tasks[t].state == TaskState::booked, "a task is sent that is not booked");
    place(id, t);
    tasks[t].next_in_batch = kNone;
    (b.list.last == kNone ? b.list.first : tasks[b.list.last].next_in_batch) = t;
    b.list.last = t;
    ++b.list.tasks;
    b.list.items += tasks[t].items;
    mc.items += tasks[t].rows;
    if (stage == 0) mc.queue_ns_sum += static_cast<std::uint64_t>(now - tasks[t].queued_ns);
  }
  ++mc.batches;
  Partition& p = machine.change(partition);
  p.free_ns = std::max(p.free_ns, now + run);
  hold(partition);
  of_module(b.module).started(id);
  Action a;
  a.kind = ActionKind::dispatch;
  a.batch = machine.handle(id);
  actions.push(a);
  return id;
}

void Scheduler::State::transfer(TaskId task, RouteId route, std::uint32_t stage, PartitionId from, PartitionId to,
                                TimeNs start) noexcept {
  const std::uint32_t request = tasks[task].request;
  Action a;
  a.kind = ActionKind::transfer;
  a.request = ledger.handle(request);
  a.token = ledger.request(request).token;
  a.route = route;
  a.module = tasks[task].module;
  a.first_stage = stage;
  a.from = from;
  a.to = to;
  a.start_ns = start;
  actions.push(a);
}

// ---- started, ended ----

void Scheduler::State::stage_started(BatchHandle handle, std::uint32_t stage) noexcept {
  if (!machine.valid(handle) || machine.batch(handle.index).stage != stage) {
    ++ledger.count().stale_events;
    return;
  }
  Batch& b = machine.change_batch(handle.index);
  b.begun = true;
  b.started_ns = now;
  const StageSpec& spec = plan_of(b).model.topology().routes[b.route].stages[stage];
  const TimeNs late = now + spec.latency.p50_ns[b.list.items - 1] - b.stage_end_ns;
  b.stage_end_ns += late;
  b.expected_end_ns += late;
  if (b.through) plan->load.moved(b, late);
  Partition& p = machine.change(b.path[stage]);
  p.free_ns = std::max(p.free_ns, b.stage_end_ns);  // feedback: reality is later than planned
}

bool Scheduler::State::stage_finished(BatchHandle handle, std::uint32_t stage,
                                      std::span<const TaskResult> results) noexcept {
  if (!machine.valid(handle) || machine.batch(handle.index).stage != stage) {
    ++ledger.count().stale_events;
    return false;
  }
  Batch& b = machine.change_batch(handle.index);
  fetch(b);
  const PartitionId at = b.path[stage];
  Partition& p = machine.change(at);
  check(p.held > 0, "a partition ends a batch it does not hold");
  --p.held;
  PartitionCounters& counted = ledger.count().partitions[at];
  --counted.running;
  if (p.held == 0) p.free_ns = now;
  const TimeNs ran = std::max<TimeNs>(0, now - b.started_ns);
  counted.busy_ns += static_cast<std::uint64_t>(ran);
  ledger.count().modules[b.module].busy_ns += static_cast<std::uint64_t>(ran);
  const RouteSpec& route = plan_of(b).model.topology().routes[b.route];
  charge(b, ran);
  // What one user's frames take beyond the plan and beyond others' says nothing of what others' will.
  const TimeNs planned = route.stages[stage].latency.p50_ns[b.list.items - 1];
  const bool dear = !shares.empty() && ledger.request(tasks[b.list.first].request).dear;
  const bool tells = !dear && (b.plan == plan_number || !plan->measured_anew);
  if (tells && b.canary) plan->load.learn_canary(b, planned, ran);
  if (tells && !b.canary) plan->load.learn(b.module, planned, ran);
  if (coordination != nullptr && !dear)
    coordination->ran(plan_of(b).model.topology().modules[b.module].application, at, b.list.items, ran);
  if (ComponentScheduler* d = scheduler_of(b)) d->ended(handle.index, ran, !dear);
  set_idle(at);
  mark_partition(at);
  if (b.state == BatchState::condemned) {
    give_back(handle.index);
    return false;
  }
  if (stage + 1 == b.stages) {
    finish_tasks(handle.index, results);
    return false;
  }
  if (!b.through) {
    pass_on(handle.index);
    return false;
  }
  const PartitionId next = b.path[stage + 1];
  if (!machine.partition(next).up) {
    give_back(handle.index);
    return false;
  }
  ++b.stage;
  b.begun = false;
  const TimeNs moved = plan_of(b).model.link_ns(route.stages[stage].transfer_bytes * b.list.items, at, next);
  b.started_ns = now + moved;
  b.stage_end_ns = now + moved + route.stages[b.stage].latency.p50_ns[b.list.items - 1];
  Partition& to = machine.change(next);
  to.free_ns = std::max(to.free_ns, b.stage_end_ns);
  hold(next);
  return true;
}

void Scheduler::State::finish_tasks(std::uint32_t id, std::span<const TaskResult> results) noexcept {
  const ModuleId module = machine.batch(id).module;
  std::size_t i = 0;
  for (TaskId t = machine.batch(id).list.first; t != kNone; ++i) {
    const TaskId next = tasks[t].next_in_batch;
    const std::uint32_t request = tasks[t].request;
    TaskResult result{};
    if (i < results.size()) {
      result = results[i];
    } else if (!results.empty()) {
      result = {.ok = false, .reason = Reason::model_error, .fan_out = 0};
    }
    --ledger.change(request).placed;
    release(t);
    ++ledger.count().modules[module].tasks_run;
    const bool alive = ledger.request(request).doom == Outcome::pending;
    if (alive && result.ok) {
      Progress& p = progress(request, module);
      p.made += result.fan_out;
      if (--p.tasks_left == 0) {
        const RequestHandle handle = ledger.handle(request);
        complete_module(request, module, true);
        if (ledger.valid(handle)) finish(request);
      }
    } else if (alive) {
      drop_request(request, Outcome::failed, result.reason, module);
    } else {
      finish(request);
    }
    t = next;
  }
  free_batch(id);
}

// A stage that is not the last has ended, and its tasks go on one by one, where their scheduler has booked them.
void Scheduler::State::pass_on(std::uint32_t id) noexcept {
  ComponentScheduler* scheduler = scheduler_of(machine.batch(id));
  for (TaskId t = machine.batch(id).list.first; t != kNone;) {
    Task& task = tasks[t];
    const TaskId next = task.next_in_batch;
    const std::uint32_t request = task.request;
    --ledger.change(request).placed;
    task.batch = kNone;
    task.state = TaskState::booked;
    unsent.insert(t);
    const bool alive = ledger.request(request).doom == Outcome::pending;
    const bool goes_on = scheduler != nullptr && scheduler->passed(t, id, alive);
    if (!alive) {
      if (scheduler == nullptr) task.state = TaskState::placed;  // booked with nobody
      release(t);
      finish(request);
    } else if (!goes_on) {
      enqueue(t);  // its way was lost meanwhile: once more from the start
    }
    t = next;
  }
  free_batch(id);
}

void Scheduler::State::free_batch(std::uint32_t id) noexcept {
  const Batch& b = machine.batch(id);
  if (ComponentScheduler* d = scheduler_of(b)) d->freed(id);
  if (b.through) plan->load.ended(b);
  --plans[b.plan]->batches;
  if (machine.batches_left() == 0) {  // whoever waited for a slot
    for (QueueId l = 0; l < plan->queues.size(); ++l) {
      if (plan->queues[l].tasks > 0) mark(l);
    }
  }
  machine.free_batch(id);
}

}  // namespace leat::core
