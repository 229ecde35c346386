// A request comes in: submitted, and through the modules of its DAG as tasks that wait. Where it goes on: dispatch.cpp.
//
// A module starts when all its predecessors are complete. A module that fans out (fan_out_cap > 1) gets one task per
// sub-request that its predecessors made, up to the cap; none means that it is complete at once. Other modules get one
// task. A module all of whose predecessors were skipped is skipped. Branches taken by chance: a module with
// items_per_request below its predecessors' is taken with that ratio; siblings share one draw and lie side by side on
// it, so that "one of two" is exact.
#include "engine/core/core.h"

namespace leat::core {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ (x >> 33);
}

}  // namespace

RequestHandle Scheduler::submit(TimeNs now, const Submission& submission) noexcept {
  state_->touch(now);
  const RequestHandle handle = state_->submit(submission);
  state_->dispatch();
  return handle.index != kNone && state_->ledger.valid(handle) ? handle : RequestHandle{};
}

RequestHandle Scheduler::State::submit(const Submission& s) noexcept {
  if (s.stream >= ledger.streams()) {
    ++ledger.count().stale_events;
    return {};
  }
  const StreamConfig& config = ledger.stream(s.stream).config;
  const ApplicationSpec& app = plan->model.topology().applications[config.application];
  ComponentScheduler& policy_of = of_module(app.modules.front());
  ledger.submitted(s.stream);
  if (!ledger.open(s.stream)) {
    ledger.refuse(s, Outcome::rejected, Reason::stream_closed);
    return {};
  }
  if (users.quarantine.refused(config.user, now)) {
    ledger.refuse(s, Outcome::rejected, Reason::poison);
    return {};
  }
  const TimeNs capture = s.capture_ns > now || s.capture_ns <= 0 ? now : s.capture_ns;
  // Look-ahead plans requests that end with their first module; a pipeline's are batched and ordered like any other's.
  ledger.expect_next(s.stream, capture, now, app.modules.size() == 1);
  grants.submitted(now, s.stream, capture);
  if (!make_room(s, capture)) return {};
  if (!policy_of.admit(config.application)) {
    ledger.refuse(s, Outcome::rejected, Reason::overload);
    return {};
  }
  const std::uint32_t id = ledger.accept(s, capture, policy_of.keeps_late());
  if (id == kNone) {
    ledger.refuse(s, Outcome::rejected, Reason::queue_full);
    return {};
  }
  const RequestHandle handle = ledger.handle(id);
  enter_share(id, app);
  ledger.change(id).grant = grants.accepted(now, s.stream, level_of(ledger.request(id)));
  agenda.watch_ns = std::min(agenda.watch_ns, ledger.request(id).overdue_ns());
  begin(id);
  return ledger.valid(handle) ? handle : RequestHandle{};
}

// Applies the stream's overload rule to a new submission. False: the submission has been answered instead.
// Only requests of which nothing has been sent are superseded: what has started has had its share of the partitions.
bool Scheduler::State::make_room(const Submission& s, TimeNs capture) noexcept {
  const Stream& stream = ledger.stream(s.stream);
  const Supersede rule = stream.config.supersede;
  if (rule == Supersede::latest || rule == Supersede::latest_per_key) {
    for (std::uint32_t r = stream.first; r != kNone;) {
      const Request& request = ledger.request(r);
      const std::uint32_t next = request.next;
      const bool same = rule == Supersede::latest || request.key == s.key;
      if (same && request.doom == Outcome::pending) {
        if (request.capture_ns > capture) {  // a newer one came before it
          ledger.refuse(s, Outcome::dropped, Reason::superseded);
          return false;
        }
        // What is held is one of a pair, and asked for.
        const bool held = request.tasks != kNone && tasks[request.tasks].state == TaskState::held;
        if (!request.started && !held) drop_request(r, Outcome::dropped, Reason::superseded, kNone);
      }
      r = next;
    }
  }
  if (stream.live < stream.config.depth) return true;
  ledger.refuse(s, Outcome::rejected, Reason::queue_full);
  return false;
}

// ---- its tasks ----

void Scheduler::State::begin(std::uint32_t request) noexcept {
  const Topology& t = plan->model.topology();
  const ApplicationSpec& app = t.applications[ledger.request(request).application];
  ledger.change(request).modules_left = static_cast<std::uint16_t>(app.modules.size());
  for (ModuleId m : app.modules) {
    progress(request, m) = Progress{};
    progress(request, m).before_left = static_cast<std::uint16_t>(t.modules[m].before.size());
  }
  const RequestHandle handle = ledger.handle(request);
  for (ModuleId m : app.modules) {
    if (!t.modules[m].before.empty()) continue;
    activate(request, m);
    if (!ledger.valid(handle)) return;  // no room for its tasks: answered
  }
}

bool Scheduler::State::branch_taken(const Request& r, ModuleId module) const noexcept {
  const Model& model = plan->model;
  if (model.module(module).branch_permille >= 1000 || r.branch_draw == 0) return true;
  const ModuleId parent = model.topology().modules[module].before.front();
  std::uint32_t start = 0;
  for (ModuleId sibling : model.topology().modules[parent].after) {
    if (sibling == module) break;
    if (model.module(sibling).branch_permille < 1000) start += model.module(sibling).branch_permille;
  }
  const auto draw = static_cast<std::uint32_t>(mix(r.branch_draw + parent) % 1000);
  return (draw + 1000 - start % 1000) % 1000 < model.module(module).branch_permille;
}

void Scheduler::State::activate(std::uint32_t request, ModuleId module) noexcept {
  Request& r = ledger.change(request);
  const ModuleSpec& spec = plan->model.topology().modules[module];
  Progress& p = progress(request, module);
  std::uint32_t n = 1;
  if (!spec.before.empty()) {
    if (!p.fed) {
      n = 0;
    } else if (spec.fan_out_cap > 1) {
      n = p.offered < spec.fan_out_cap ? p.offered : spec.fan_out_cap;
      ledger.count().modules[module].left_out += p.offered - n;
    } else if (p.offered == 0 || !branch_taken(r, module)) {
      n = 0;
    }
  }
  if (n == 0) {
    complete_module(request, module, false);
    return;
  }
  if (spec.before.empty() && r.items > plan->model.module(module).max_items) {
    drop_request(request, Outcome::rejected, Reason::unschedulable, module);
    return;
  }
  if (tasks.left() < n) {
    drop_request(request, Outcome::dropped, Reason::queue_full, module);
    return;
  }
  p.tasks_left = static_cast<std::uint16_t>(n);
  // What takes longer than planned must begin sooner to be in time.
  const TimeNs longer = r.dear ? longer_ns(r, module) : 0;
  const bool asked_for = (coordination != nullptr && coordination->has(r.stream)) || grants.none_replaces(r.stream);
  const TimeNs turn = spec.before.empty() && !asked_for ? ledger.turn_ns(request) : 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const TaskId id = tasks.take();
    Task& t = tasks[id];
    t.deadline_ns = r.deadline_ns;
    t.give_up_ns = r.give_up_ns;
    if (r.dear) hasten(t, longer);
    t.queued_ns = now;
    t.turn_ns = turn;
    t.request = request;
    t.module = module;
    t.item = static_cast<std::uint16_t>(i);
    t.rows = t.items = spec.before.empty() ? r.items : 1;
    if (sizes != nullptr)
      t.items = std::min(t.rows * std::max(sizes->units(r.token, module, i), 1u), plan->model.module(module).max_items);
    t.level = level_of(r);
    t.retries = 0;
    t.batch = kNone;
    t.previous_of_request = kNone;
    t.next_of_request = r.tasks;
    if (r.tasks != kNone) tasks[r.tasks].previous_of_request = id;
    r.tasks = id;
    unsent.insert(id);
    enter(id);
  }
  ledger.count().modules[module].tasks += n;
}

void Scheduler::State::enter(TaskId id) noexcept {
  Task& t = tasks[id];
  const Request& r = ledger.request(t.request);
  if (coordination == nullptr || !coordination->has(r.stream)) return enter_gate(id);
  switch (coordination->arrived(now, r.stream, r.capture_ns, id)) {
    case Coordination::Way::hold:
      t.serial = ++agenda.serial;
      t.state = TaskState::held;
      return;
    case Coordination::Way::background:
      t.level = 0;
      [[fallthrough]];
    case Coordination::Way::queue:
      enter_gate(id);
  }
}

void Scheduler::State::enqueue(TaskId id) noexcept {
  Task& t = tasks[id];
  t.serial = ++agenda.serial;
  t.batch = kNone;
  const QueueId queue = of_module(t.module).enqueue(id);
  check(queue < plan->queues.size() && plan->queues[queue].module == t.module,
        "a task is put into another module's queue");
  plan->queues.insert(tasks, id, queue);
  plan->load.queued(plan->model, t.module, t.items, now);
  ++ledger.count().modules[t.module].queued;
  if (t.give_up_ns != kNever) want_timer(t.deadline_ns > now ? t.deadline_ns : t.give_up_ns);
  mark(queue);
}

}  // namespace leat::core
