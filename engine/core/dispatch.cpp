// Who is asked for a batch, when, and what becomes of the answer: the operations of a scheduler, and the actions that
// the driver is told. Where it goes on: completion.cpp.
#include <algorithm>
#include <bit>

#include "engine/core/core.h"

namespace leat::core {

// ---- who is asked ----

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
    } else if (!agenda.partitions.empty()) {
      const PartitionId id = agenda.partitions.back();
      agenda.partitions.pop_back();
      agenda.partition_listed[id] = 0;
      const ComponentId c = plan->model.component_of_partition(id);
      while (c != kNone && plan->schedulers[c]->next(id)) {
      }
    } else if (!open_gate()) {
      break;
    }
  }
  if (!grants.none()) give_turns();
}

// Streams that wait for grants are told what is new to them.
void Scheduler::State::give_turns() noexcept {
  grants.decide(now, *this);
  for (const StreamId stream : grants.changed()) {
    const std::uint64_t turns = grants.told(stream).granted;
    RequestCounters& of_stream = ledger.count().streams[stream];
    ledger.count().total.granted += turns - of_stream.granted;
    of_stream.granted = turns;
    Action told;
    told.kind = ActionKind::schedule;
    told.stream = stream;
    actions.push(told);
  }
  grants.told_all();
}

void Scheduler::State::mark(QueueId id) noexcept {
  TaskQueue& queue = plan->queues.change(id);
  if (queue.dirty) return;
  queue.dirty = true;
  plan->dirty_queues.push_back(id);
}

void Scheduler::State::mark_partition(PartitionId id) noexcept {
  if (agenda.partition_listed[id] != 0) return;
  agenda.partition_listed[id] = 1;
  agenda.partitions.push_back(id);
}

void Scheduler::State::set_idle(PartitionId id) noexcept {
  Partition& p = machine.change(id);
  if (p.held == 0) p.overlap_ns = 0;
  const TimeNs next_ns = p.free_ns - p.overlap_ns;
  const bool ahead = p.up && p.held > 0 && p.held <= plan->policy.queue_ahead;
  p.takes = p.up && (p.held == 0 || (ahead && next_ns - now <= plan->policy.ahead_within_ns));
  // Where batches overlap, the next one is wanted before the end of the last: nothing else happens then.
  const TimeNs at = ahead && !p.takes && p.overlap_ns > 0 ? next_ns - plan->policy.ahead_within_ns : 0;
  agenda.asked += (at != 0 ? 1u : 0u) - (p.asked_at_ns != 0 ? 1u : 0u);
  p.asked_at_ns = at;
  if (at != 0) want_timer(at);
  plan->queues.set_idle(id, p.takes);
}

// ---- operations: what waits ----

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

void Scheduler::State::unbook(TaskId t) noexcept { enqueue(t); }

void Scheduler::State::retry(TaskId t) noexcept {
  ++ledger.count().retries;
  if (++tasks[t].retries <= kMaxRetries) {
    enqueue(t);
  } else {
    drop_request(tasks[t].request, Outcome::failed, Reason::partition_lost, tasks[t].module);
  }
}

void Scheduler::State::wake(QueueId queue, TimeNs at) noexcept {
  plan->queues.change(queue).wake_ns = at;
  want_timer(at);
}

void Scheduler::State::keep_idle(PartitionId partition, TimeNs until) noexcept {
  TimeNs& kept = machine.change(partition).deferred_until_ns;
  agenda.kept_idle += (until != 0 ? 1u : 0u) - (kept != 0 ? 1u : 0u);
  kept = until;
  if (until != 0) want_timer(until);
}

// ---- operations: a batch is sent ----

std::uint32_t Scheduler::State::start(QueueId queue, ConsumerId consumer, TimeNs start, const Path& path) noexcept {
  TaskQueue& from = plan->queues.change(queue);
  const QueueConsumer& s = plan->queues.consumer(consumer);
  const RouteSpec& route = plan->model.topology().routes[s.route];
  check(s.queue == queue && path.partition[0] == s.partition, "a batch is started by another queue's consumer");
  check(from.forming.tasks > 0 && from.forming.items <= route.batch, "a batch is started with no task or too many");
  check(machine.partition(s.partition).takes, "a batch is started on a partition that takes none");
  return send_forming(queue, consumer, start, path);
}

std::uint32_t Scheduler::State::send_forming(QueueId queue, ConsumerId consumer, TimeNs start,
                                             const Path& path) noexcept {
  TaskQueue& from = plan->queues.change(queue);
  const QueueConsumer& s = plan->queues.consumer(consumer);
  const RouteSpec& route = plan->model.topology().routes[s.route];
  const std::uint32_t id = machine.take_batch();
  Batch& b = machine.change_batch(id);
  b.route = s.route;
  b.module = from.module;
  b.stages = static_cast<std::uint32_t>(route.stages.size());
  b.plan = plans.number;
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
  b.then = sequel(b, consumer);
  // What a partition goes on with by itself has nothing beside it.
  machine.change(b.path[0]).overlap_ns =
      b.then != kNone ? 0 : route.stages[0].overlap_ns(std::min(b.list.items, route.batch));
  of_module(b.module).started(id);
  plan->load.started(b);
  ++mc.batches;
  hold(b.path[0]);
  tell_dispatch(id);
  return id;
}

void Scheduler::State::tell_dispatch(std::uint32_t batch) noexcept {
  Action told;
  told.kind = ActionKind::dispatch;
  told.batch = machine.handle(batch);
  actions.push(told);
}

std::uint32_t Scheduler::State::send(RouteId route, std::uint32_t stage, PartitionId partition,
                                     std::span<const TaskId> members, TimeNs run) noexcept {
  check(machine.partition(partition).takes, "a batch is sent to a partition that takes none");
  const std::uint32_t id = machine.take_batch();
  Batch& b = machine.change_batch(id);
  const RouteSpec& spec = plan->model.topology().routes[route];
  b.route = route;
  b.module = spec.module;
  b.stage = stage;
  b.stages = static_cast<std::uint32_t>(spec.stages.size());
  b.plan = plans.number;
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
  p.overlap_ns = 0;  // reservations lie behind one another
  hold(partition);
  of_module(b.module).started(id);
  tell_dispatch(id);
  return id;
}

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
  if (!r.started) ledger.sent(t.request);
}

void Scheduler::State::hold(PartitionId p) noexcept {
  ++machine.change(p).held;
  ++ledger.count().partitions[p].running;
  ++ledger.count().partitions[p].batches;
  set_idle(p);
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

// ---- what the driver is told ----

bool Scheduler::next_action(Action& out) noexcept { return state_->next_action(out); }

bool Scheduler::State::next_action(Action& out) noexcept {
  while (actions.pop(out)) {
    if (out.kind != ActionKind::dispatch) return true;
    if (!machine.valid(out.batch)) continue;  // its partition was lost before it was sent
    const Batch& b = machine.batch(out.batch.index);
    std::size_t n = 0;
    out.alone = false;
    for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
      const Task& task = tasks[t];
      const Request& request = ledger.request(task.request);
      out.alone = out.alone || request.deaths > 0 || request.company == Company::nobody;
      scratch.batch[n++] = {.request = ledger.handle(task.request),
                            .token = ledger.request(task.request).token,
                            .item = task.item,
                            .items = task.rows,
                            .units = task.items};
    }
    out.tasks = {scratch.batch.data(), n};
    out.first_stage = b.through ? 0 : b.stage;
    out.path = {b.path.data() + out.first_stage, b.through ? b.stages : 1};
    out.route = b.route;
    out.module = b.module;
    out.start_ns = b.start_ns;
    out.expected_end_ns = b.expected_end_ns;
    out.then = b.then;
    out.went_on = b.went_on;
    return true;
  }
  return false;
}

// ---- the clock ----

void Scheduler::State::touch(TimeNs at) noexcept {
  if (at < now) {
    ++ledger.count().clock_steps_back;
  } else {
    now = at;
  }
}

void Scheduler::advance(TimeNs now) noexcept {
  state_->touch(now);
  state_->advance();
}

void Scheduler::State::advance() noexcept {
  if (coordination != nullptr) coordinate();
  if (agenda.watch_ns <= now) watch();
  if (agenda.timer_ns > now) {  // only the watch was due
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
  for (PartitionId id = 0; agenda.kept_idle > 0 && id < machine.partitions(); ++id) {
    const TimeNs until = machine.partition(id).deferred_until_ns;
    if (until == 0 || until > now) continue;
    keep_idle(id, 0);
    mark_partition(id);
  }
  for (PartitionId id = 0; agenda.asked > 0 && id < machine.partitions(); ++id) {
    const TimeNs at = machine.partition(id).asked_at_ns;
    if (at == 0 || at > now) continue;
    set_idle(id);
    mark_partition(id);
  }
  for (const auto& scheduler : plan->schedulers) scheduler->advance();
  dispatch();
  agenda.timer_ns = earliest_timer();
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
  for (PartitionId p = 0; agenda.kept_idle > 0 && p < machine.partitions(); ++p) {
    const TimeNs until = machine.partition(p).deferred_until_ns;
    if (until > now) at = std::min(at, until);
  }
  for (PartitionId p = 0; agenda.asked > 0 && p < machine.partitions(); ++p) {
    const TimeNs asked = machine.partition(p).asked_at_ns;
    if (asked > now) at = std::min(at, asked);
  }
  return at;
}

}  // namespace leat::core
