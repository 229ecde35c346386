// A batch's stages start and end, what was in it goes on to the next stage or the next module, and a request that has
// nothing left to wait for is answered; so is one that is given up.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

// ---- a batch ----

void Scheduler::stage_started(TimeNs now, BatchHandle batch, std::uint32_t stage) noexcept {
  state_->touch(now);
  state_->stage_started(batch, stage);
}

void Scheduler::State::stage_started(BatchHandle handle, std::uint32_t stage) noexcept {
  if (!machine.valid(handle) || machine.batch(handle.index).stage != stage) {
    ++ledger.count().stale_events;
    return;
  }
  Batch& b = machine.change_batch(handle.index);
  const StageSpec& spec = plan_of(b).model.topology().routes[b.route].stages[stage];
  // One that has begun beside the one before it did so when it came, or when that one left room for it.
  const TimeNs came = stage == 0 ? b.sent_ns : b.started_ns;
  const TimeNs began = b.begun ? std::clamp(came, now - spec.overlap_ns(b.list.items), now) : now;
  b.begun = true;
  b.started_ns = began;
  b.overlapped_ns = now - began;
  const TimeNs late = began + spec.latency.p50_ns[b.list.items - 1] - b.stage_end_ns;
  b.stage_end_ns += late;
  b.expected_end_ns += late;
  if (b.through) plan->load.moved(b, late);
  // Feedback: what is behind it there ends as much later, or sooner, as this will.
  Partition& p = machine.change(b.path[stage]);
  p.free_ns = std::max(p.held > 1 ? p.free_ns + late : p.free_ns, b.stage_end_ns);
  if (p.overlap_ns == 0) return;
  const bool took = p.takes;
  set_idle(b.path[stage]);
  if (took || !p.takes) return;
  mark_partition(b.path[stage]);  // asked with the next event, which is at once
  want_timer(now);
}

void Scheduler::stage_beside(TimeNs now, BatchHandle batch, std::uint32_t stage) noexcept {
  state_->touch(now);
  Machine& machine = state_->machine;
  if (!machine.valid(batch) || machine.batch(batch.index).stage != stage) {
    ++state_->ledger.count().stale_events;
    return;
  }
  machine.change_batch(batch.index).begun = true;
}

// What the end of a batch looks at is scattered over memory: asked for at once, it comes while the first is worked on.
void Scheduler::State::fetch(const Batch& b) const noexcept {
  const std::size_t n = std::min<std::size_t>(b.list.tasks, kFetched);
  for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(&tasks[b.first[i]].request);
  for (std::size_t i = 0; i < n; ++i) ledger.fetch(tasks[b.first[i]].request);
}

bool Scheduler::stage_finished(TimeNs now, BatchHandle batch, std::uint32_t stage, std::span<const TaskResult> results,
                               TimeNs went_on_ns) noexcept {
  state_->touch(now);
  const bool goes_on = state_->stage_finished(batch, stage, results, went_on_ns);
  state_->dispatch();
  return goes_on;
}

bool Scheduler::State::stage_finished(BatchHandle handle, std::uint32_t stage, std::span<const TaskResult> results,
                                      TimeNs went_on_ns) noexcept {
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
  const TimeNs ended = went_on_ns > 0 ? std::min(went_on_ns, now) : now;
  const TimeNs ran = std::max<TimeNs>(0, ended - b.started_ns);
  const TimeNs occupied = std::max<TimeNs>(0, ran - b.overlapped_ns);
  counted.busy_ns += static_cast<std::uint64_t>(occupied);
  ledger.count().modules[b.module].busy_ns += static_cast<std::uint64_t>(occupied);
  const RouteSpec& route = plan_of(b).model.topology().routes[b.route];
  charge(b, occupied);
  // What one user's frames take beyond the plan and beyond others' says nothing of what others' will.
  const TimeNs planned = route.stages[stage].latency.p50_ns[b.list.items - 1];
  const bool dear = !users.shares.empty() && ledger.request(tasks[b.list.first].request).dear;
  const bool tells = !dear && (b.plan == plans.number || plan->measured_anew[b.module] == 0);
  if (tells && b.canary) plan->load.learn_canary(b, planned, ran);
  if (tells && !b.canary) plan->load.learn(b.module, planned, ran);
  if (tells && !b.canary && b.plan == plans.number && plan->paying.ran(b.route, b.list.items, planned, ran))
    grants.measure(plan->model, plan->paying, machine);
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
    const RouteId then = went_on_ns > 0 && b.plan == plans.number ? b.then : kNone;
    scratch.requests.clear();
    for (TaskId t = b.list.first; t != kNone && then != kNone; t = tasks[t].next_in_batch)
      scratch.requests.push_back(tasks[t].request);
    finish_tasks(handle.index, results);
    if (then != kNone) go_on(then, at, ended);
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
  b.overlapped_ns = 0;
  const TimeNs moved = plan_of(b).model.link_ns(route.stages[stage].transfer_bytes * b.list.items, at, next);
  b.started_ns = now + moved;
  b.stage_end_ns = now + moved + route.stages[b.stage].latency.p50_ns[b.list.items - 1];
  Partition& to = machine.change(next);
  to.free_ns = std::max(to.free_ns, b.stage_end_ns);
  to.overlap_ns = route.stages[b.stage].overlap_ns(b.list.items);
  hold(next);
  return true;
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

void Scheduler::State::free_batch(std::uint32_t id) noexcept {
  const Batch& b = machine.batch(id);
  if (ComponentScheduler* d = scheduler_of(b)) d->freed(id);
  if (b.through) plan->load.ended(b);
  --plans.held[b.plan]->batches;
  if (machine.batches_left() == 0) {  // whoever waited for a slot
    for (QueueId l = 0; l < plan->queues.size(); ++l) {
      if (plan->queues[l].tasks > 0) mark(l);
    }
  }
  machine.free_batch(id);
}

// ---- a request ----

namespace {

// More was sent than the partitions can do.
bool for_want_of_room(Reason r) noexcept {
  return r == Reason::superseded || r == Reason::expired || r == Reason::unreachable || r == Reason::window ||
         r == Reason::stale || r == Reason::overload;
}

}  // namespace

void Scheduler::State::complete_module(std::uint32_t request, ModuleId module, bool ran) noexcept {
  // Skipped modules complete their successors at once, so this goes on until a task exists or the request is done. A
  // work list instead of recursion: its depth is bounded by the application's modules.
  struct Done {
    ModuleId module;
    bool ran;
  };
  std::array<Done, kMaxModulesPerApplication> list;  // only what was pushed is read
  std::size_t count = 0;
  list[count++] = {module, ran};
  const Topology& t = plan->model.topology();
  const RequestHandle handle = ledger.handle(request);
  while (count > 0) {
    const Done done = list[--count];
    --ledger.change(request).modules_left;
    const Progress& from = progress(request, done.module);
    for (ModuleId next : t.modules[done.module].after) {
      Progress& p = progress(request, next);
      p.offered += from.made;
      p.fed = p.fed || done.ran;
      if (--p.before_left > 0) continue;
      const bool skipped = !p.fed || p.offered == 0 ||
                           (t.modules[next].fan_out_cap == 1 && !branch_taken(ledger.request(request), next));
      if (skipped) {
        list[count++] = {next, false};
      } else {
        activate(request, next);
        if (!ledger.valid(handle)) return;
      }
    }
  }
}

void Scheduler::State::drop_request(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept {
  ledger.doom(request, outcome, reason, where);
  for (TaskId t = ledger.request(request).tasks; t != kNone;) {
    const TaskId next = tasks[t].next_of_request;
    if (tasks[t].state != TaskState::placed) release(t);
    t = next;
  }
  finish(request);
}

void Scheduler::State::finish(std::uint32_t request) noexcept {
  const Request& r = ledger.request(request);
  if (r.placed > 0) return;
  if (r.doom != Outcome::pending || r.modules_left == 0) correct_share(r, r.doom == Outcome::pending);
  if (r.doom != Outcome::pending) {
    const bool lost = r.doom == Outcome::dropped && !r.started && for_want_of_room(r.doom_reason);
    grants.answered(now, r.stream, r.grant, lost ? Grants::End::lost : Grants::End::other);
    ledger.answer(request, r.doom, r.doom_reason, r.doom_where, now);
  } else if (r.modules_left == 0) {
    grants.answered(now, r.stream, r.grant, Grants::End::ran);
    if (coordination != nullptr && coordination->has(r.stream)) coordination->answered(now, r.stream, r.capture_ns);
    ledger.answer(request, now <= r.deadline_ns ? Outcome::completed : Outcome::late, Reason::none, kNone, now);
  }
}

void Scheduler::State::dequeue(TaskId id) noexcept {
  const Task& t = tasks[id];
  plan->queues.erase(tasks, id);
  plan->load.unqueued(plan->model, t.module, t.items, now);
  --ledger.count().modules[t.module].queued;
  of_module(t.module).left(id);
}

void Scheduler::State::release(TaskId id) noexcept {
  Task& t = tasks[id];
  if (t.state == TaskState::booked) {
    of_module(t.module).withdraw(id);
  } else if (t.state == TaskState::held) {
    coordination->withdrawn(ledger.request(t.request).stream, id);
  } else if (t.state == TaskState::gated) {
    users.gate.withdraw(tasks, id);
  } else if (t.state == TaskState::queued && t.queue != kNone) {
    dequeue(id);
  } else if (t.state == TaskState::queued) {
    plan->queues.unform(tasks, t.batch, id);
  }
  Request& r = ledger.change(t.request);
  (t.previous_of_request == kNone ? r.tasks : tasks[t.previous_of_request].next_of_request) = t.next_of_request;
  if (t.next_of_request != kNone) tasks[t.next_of_request].previous_of_request = t.previous_of_request;
  t.state = TaskState::free;
  users.gate.over(id);
  unsent.erase(id);
  tasks.give(id);
}

// ---- given up ----

void Scheduler::close_stream(TimeNs now, StreamId stream, Reason reason) noexcept {
  state_->touch(now);
  state_->close_stream(stream, reason);
  state_->dispatch();
}

void Scheduler::State::close_stream(StreamId id, Reason reason) noexcept {
  if (!ledger.open(id)) {
    ++ledger.count().stale_events;
    return;
  }
  ledger.close_stream(id);
  grants.close(id);
  if (coordination != nullptr) coordination->close(now, id);
  for (std::uint32_t r = ledger.stream(id).first; r != kNone;) {
    const std::uint32_t next = ledger.request(r).next;
    drop_request(r, Outcome::dropped, reason, kNone);
    r = next;
  }
}

void Scheduler::cancel(TimeNs now, RequestHandle request) noexcept {
  state_->touch(now);
  if (request.index == kNone || !state_->ledger.valid(request)) {
    ++state_->ledger.count().stale_events;
    return;
  }
  state_->drop_request(request.index, Outcome::dropped, Reason::cancelled, kNone);
  state_->dispatch();
}

void Scheduler::State::watch() noexcept {
  TimeNs next = kNever;
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    for (std::uint32_t r = ledger.stream(s).first; r != kNone;) {
      const Request& request = ledger.request(r);
      const std::uint32_t following = request.next;
      const TimeNs at = request.overdue_ns();
      if (at > now) {
        next = std::min(next, at);
      } else if (request.placed > 0) {  // it runs: its end decides
        next = std::min(next, now + request.give_up_ns - request.capture_ns);
      } else if (request.doom == Outcome::pending) {
        ++ledger.count().left_undecided;
        drop_request(r, Outcome::dropped, Reason::expired, kNone);
      }
      r = following;
    }
  }
  agenda.watch_ns = next;
}

}  // namespace leat::core
