// The door: each call is one event, through the rooms to actions.
#include "engine/core/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "engine/core/core.h"
#include "engine/core/policy/registry.h"

namespace leat::core {

void broken(const char* what) noexcept {
  std::fprintf(stderr, "leat: scheduler: broken invariant: %s\n", what);
  std::abort();
}

Topology padded(Topology t, std::size_t partitions) {
  t.partitions.resize(partitions);
  return t;
}

ActivePlan::ActivePlan(const Topology& topology, const Policy& by, const Limits& limits, Scheduler::State& core)
    : policy(by),
      model(topology),
      queues(model),
      load(model, limits.samples || needs_estimates(policy)),
      paying(model) {
  const StateView view{.model = model,
                       .queues = queues,
                       .load = load,
                       .paying = paying,
                       .ledger = core.ledger,
                       .machine = core.machine,
                       .tasks = core.tasks,
                       .now = core.now,
                       .queue_ahead = policy.queue_ahead};
  for (const Component& c : model.components())
    schedulers.push_back(make_scheduler({view, core, c, policy, limits, queues}));
  sequels = find_sequels(model, queues, policy.goes_on_within_ns);
  if (limits.coordinated > 0) coordination = std::make_unique<Coordination>(model.topology(), limits);
  dirty_queues.reserve(queues.size());
  measured_anew.resize(topology.modules.size());
}

Scheduler::State::State(const Topology& t, const Policy& p, const Limits& l)
    : policy(p),
      limits(l),
      // One event can answer every request and send every batch; each submission besides can be answered at once.
      actions(std::max<std::size_t>(l.actions, std::size_t{l.requests} + l.batches + 1) + l.streams),
      ledger(l, t, actions),
      machine(std::max<std::size_t>(t.partitions.size(), l.partitions), l.batches),
      users(l.streams, machine.partitions()),
      grants(l, std::max<std::size_t>(l.applications, t.applications.size())),
      tasks(l.tasks),
      unsent(l.tasks) {
  check(t.problem().empty(), "the topology is not valid");
  plans.held[0] = ReadyPlanPtr(new ActivePlan(padded(t, machine.partitions()), policy, limits, *this));
  plan = plans.held[0].get();
  coordination = plan->coordination.get();
  agenda.partitions.reserve(machine.partitions());
  agenda.partition_listed.resize(machine.partitions());
  scratch.batch.resize(kMaxBatch);
  scratch.moving.reserve(limits.tasks);
  scratch.requests.reserve(kMaxBatch);
  ledger.count().partitions.resize(machine.partitions());
  grants.measure(plan->model, plan->paying, machine);
}

// Everything that the rooms say of themselves, recounted, and what holds between them.
void Scheduler::State::audit() const {
  ledger.audit();
  plan->queues.audit(tasks);
  plan->load.audit();
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    for (std::uint32_t r = ledger.stream(s).first; r != kNone; r = ledger.request(r).next) {
      std::uint32_t placed = 0, open = 0;
      for (TaskId t = ledger.request(r).tasks; t != kNone; t = tasks[t].next_of_request, ++open) {
        check(tasks[t].request == r && tasks[t].state != TaskState::free, "a request's list of tasks");
        check(unsent.has(t) == (tasks[t].state != TaskState::placed), "which tasks have not been sent");
        placed += tasks[t].state == TaskState::placed ? 1 : 0;
      }
      check(placed == ledger.request(r).placed, "a request's number of placed tasks");
      check(open > 0, "a request in flight has nothing to wait for");
    }
  }
  std::uint32_t waiting = 0, live = 0;
  unsent.for_each([&](TaskId t) { waiting += tasks[t].state != TaskState::free ? 1 : 0, ++live; });
  check(waiting == live, "a task that is gone has not been sent");
  std::vector<ModuleLoad> running(plan->model.topology().modules.size());
  std::vector<std::uint32_t> held(machine.partitions(), 0);
  for (std::uint32_t i = 0; i < machine.batches(); ++i) {
    const Batch& b = machine.batch(i);
    if (b.state == BatchState::free) continue;
    ++held[b.path[b.stage]];
    if (b.through) running[b.module].started(b);
    std::uint32_t items = 0;
    for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
      check(tasks[t].state == TaskState::placed && tasks[t].batch == i, "a batch's tasks");
      items += tasks[t].items;
    }
    check(items == b.list.items &&
              items <= plan_of(b).model.topology().routes[b.route].stages[b.stage].latency.p50_ns.size(),
          "a batch's size");
  }
  for (PartitionId p = 0; p < held.size(); ++p) check(held[p] == machine.partition(p).held, "a partition's batches");
  for (ModuleId m = 0; m < running.size(); ++m)
    check(running[m].same_running(plan->load.module(m)), "what runs of a module");
  for (const auto& scheduler : plan->schedulers) scheduler->audit();
  grants.audit(ledger);
}

Scheduler::Scheduler(const Topology& topology, const Policy& policy, const Limits& limits)
    : state_(std::make_unique<State>(topology, policy, limits)) {}
Scheduler::~Scheduler() = default;
void Scheduler::measure_tasks(const TaskSizes& sizes) noexcept { state_->sizes = &sizes; }
void Scheduler::watch_offers(const Offers& offers) noexcept { state_->offered = &offers; }

StreamId Scheduler::open_stream(TimeNs now, const StreamConfig& config) noexcept {
  state_->touch(now);
  const auto& applications = state_->plan->model.topology().applications;
  if (config.application >= applications.size()) return kNone;
  if (config.terms.sla_drop <= 0) return state_->open_stream(config);
  if (!can_coordinate(config.application)) return kNone;
  StreamConfig asked = config;
  asked.period_ns = 0;  // look-ahead would wait for a frame each period
  asked.waits_for_grants = false;
  const StreamId stream = state_->open_stream(asked);
  if (stream == kNone || state_->coordination->open(now, stream, config)) return stream;
  state_->ledger.close_stream(stream);
  state_->grants.close(stream);
  return kNone;
}
StreamId Scheduler::State::open_stream(const StreamConfig& config) noexcept {
  const ApplicationSpec& application = plan->model.topology().applications[config.application];
  const StreamId stream = ledger.open_stream(config, application);
  if (stream != kNone)
    grants.open(stream, config, plan->model.component_of(application.modules.front()),
                ledger.stream(stream).config.slo_ns, plan->model.cost_ns(config.application));
  return stream;
}
bool Scheduler::observe(TimeNs now, StreamId stream, const Observation& seen) noexcept {
  state_->touch(now);
  return state_->coordination != nullptr && state_->coordination->observe(state_->now, stream, seen);
}
StreamSchedule Scheduler::schedule(StreamId stream) const noexcept {
  StreamSchedule out = state_->coordination == nullptr ? StreamSchedule{} : state_->coordination->schedule(stream);
  const Grants::Told told = state_->grants.told(stream);
  out.open = told.open;
  out.granted = told.granted;
  return out;
}
bool Scheduler::can_coordinate(std::uint32_t application) const noexcept {
  return state_->coordination != nullptr && state_->coordination->serves(application);
}
bool Scheduler::partition_lost(TimeNs now, PartitionId partition) noexcept {
  state_->touch(now);
  const bool convicts = state_->partition_lost(partition);
  state_->dispatch();
  return convicts;
}
void Scheduler::partition_ready(TimeNs now, PartitionId partition) noexcept {
  state_->touch(now);
  state_->partition_ready(partition);
  state_->dispatch();
}
void Scheduler::set_estimates(TimeNs now, const Estimates& estimates) noexcept {
  state_->touch(now);
  for (const auto& scheduler : state_->plan->schedulers) scheduler->estimates(estimates);
}
std::size_t Scheduler::take_samples(std::span<Sample> out) noexcept { return state_->plan->load.take_samples(out); }
TimeNs Scheduler::next_timer() const noexcept {
  const TimeNs at = std::min(idle() ? kNever : std::min(state_->agenda.timer_ns, state_->agenda.watch_ns),
                             state_->grants.next_timer());
  return state_->coordination == nullptr ? at : std::min(at, state_->coordination->next_timer());
}
ReadyPlanPtr Scheduler::prepare(const Topology& topology) const { return prepare(topology, state_->policy); }
ReadyPlanPtr Scheduler::prepare(const Topology& topology, const Policy& policy) const {
  return ReadyPlanPtr(new ActivePlan(padded(topology, state_->machine.partitions()), policy, state_->limits, *state_));
}
bool Scheduler::replace(TimeNs now, ReadyPlanPtr& plan, bool measured_anew) noexcept {
  state_->touch(now);
  return state_->replace(plan, measured_anew);
}
ReadyPlanPtr Scheduler::take_retired() noexcept {
  for (ReadyPlanPtr& plan : state_->plans.held) {
    if (plan != nullptr && plan.get() != state_->plan && plan->batches == 0) return std::move(plan);
  }
  return nullptr;
}
bool Scheduler::quiet(PartitionId partition) const noexcept {
  return partition < state_->machine.partitions() && state_->machine.partition(partition).held == 0 &&
         state_->plan->model.component_of_partition(partition) == kNone;
}
std::uint32_t Scheduler::in_flight(std::uint32_t application) const noexcept {
  return state_->ledger.in_flight(application);
}
void Scheduler::give_up(TimeNs now, std::uint32_t application, Reason reason) noexcept {
  state_->touch(now);
  for (StreamId s = 0; s < state_->ledger.streams(); ++s) {
    for (std::uint32_t r = state_->ledger.stream(s).first; r != kNone;) {
      const std::uint32_t next = state_->ledger.request(r).next;
      if (state_->ledger.request(r).application == application) state_->drop_request(r, Outcome::failed, reason, kNone);
      r = next;
    }
  }
  state_->dispatch();
}
bool Scheduler::idle() const noexcept { return counters().total.in_flight == 0; }
bool Scheduler::full() const noexcept {
  bool up = false;
  for (PartitionId p = 0; p < state_->machine.partitions(); ++p) {
    if (state_->machine.partition(p).takes) return false;
    up = up || state_->machine.partition(p).up;
  }
  return up;
}
const Counters& Scheduler::counters() const noexcept { return state_->ledger.counters(); }
TimeNs Scheduler::oldest_queued_ns(ModuleId module) const noexcept {
  const ActivePlan& plan = *state_->plan;
  TimeNs oldest = 0;
  for (QueueId q = plan.queues.first(module), end = q + plan.queues.count(module); q < end; ++q) {
    for (const ArrivalList& arrivals : plan.queues[q].arrivals) {
      if (arrivals.front() == kNone) continue;
      const TimeNs came = state_->tasks[arrivals.front()].queued_ns;
      if (oldest == 0 || came < oldest) oldest = came;
    }
  }
  return oldest;
}
void Scheduler::audit() const { state_->audit(); }

// ---- its state ----

namespace {

constexpr std::uint64_t layout_of(std::initializer_list<std::size_t> sizes) {
  std::uint64_t out = 0;
  for (const std::size_t size : sizes) out = out * 1'000'003 + size;
  return out;
}
// Of the plain values in a state: where it differs, another build has written it.
constexpr std::uint64_t kLayout =
    layout_of({sizeof(Stream), sizeof(Request), sizeof(Progress), sizeof(Task), sizeof(Batch), sizeof(Partition),
               sizeof(TaskQueue), sizeof(ModuleLoad), sizeof(ApplicationLoad), sizeof(RequestCounters),
               sizeof(ModuleCounters), sizeof(PartitionCounters), sizeof(UserRules), sizeof(Grants),
               sizeof(Coordination), sizeof(streams::Coordinator), sizeof(streams::User)});

}  // namespace

void Scheduler::State::visit_state(Snapshot& state) {
  std::uint64_t layout = kLayout;
  state(layout);
  if (layout != kLayout) return state.fail();
  std::uint32_t number = plans.number;  // by which batches name the plan in force
  state(number);
  if (number >= plans.held.size()) return state.fail();
  if (number != plans.number) std::swap(plans.held[number], plans.held[plans.number]);
  plans.number = number;
  state(now, agenda, ledger, machine, users, grants, tasks, unsent);
  state(*plan);
}

bool Scheduler::settled() const noexcept {
  return state_->actions.empty() &&
         std::ranges::count_if(state_->plans.held, [](const ReadyPlanPtr& p) { return p != nullptr; }) == 1;
}

std::size_t Scheduler::save(std::span<std::byte> to) const noexcept {
  Snapshot state = Snapshot::writing(to);
  state_->visit_state(state);
  return state.ok() ? to.size() - state.left() : 0;
}

bool Scheduler::load(std::span<const std::byte> from) noexcept {
  Snapshot state = Snapshot::reading(from);
  state_->visit_state(state);
  return state.ok() && state.left() == 0;
}

}  // namespace leat::core
