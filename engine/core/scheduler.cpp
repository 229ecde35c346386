#include "engine/core/scheduler.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "engine/core/estimator.h"
#include "engine/core/state.h"

namespace leat::core {

void broken(const char* what) noexcept {
  std::fprintf(stderr, "leat: scheduler: broken invariant: %s\n", what);
  std::abort();
}

Scheduler::State::State(const Topology& t, const Policy& p, const Limits& l)
    : topology(t),
      policy(p),
      limits(l),
      random(p.seed),
      margin_permille(p.margin_permille),
      background_credit_ns(p.background_budget_ns),
      applications(t.applications.size()),
      modules(t.modules.size()),
      partitions(t.partitions.size()),
      streams(l.streams),
      requests(l.requests),
      tasks(l.tasks),
      batches(l.batches) {
  insist(topology.problem().empty(), "the topology is not valid");
  for (const ApplicationSpec& app : topology.applications) {
    for (std::size_t i = 0; i < app.modules.size(); ++i) {
      ModuleState& m = modules[app.modules[i]];
      m.application = topology.modules[app.modules[i]].application;
      m.local = static_cast<std::uint32_t>(i);
      m.queue_delay = Window(policy.window_ns);
      m.arrivals = Window(policy.window_ns);
    }
    progress_stride = std::max(progress_stride, static_cast<std::uint32_t>(app.modules.size()));
  }
  build_tables();
  plan_caps();
  if (policy.place == Place::tc && policy.binding == Binding::early) plan_turns();
  for (std::uint32_t a = 0; a < applications.size(); ++a) update_downstream(a);
  const bool pipelined = std::any_of(topology.routes.begin(), topology.routes.end(), [](const RouteSpec& r) { return r.stages.size() > 1; });
  if (policy.place == Place::reservation || (policy.reserve_pipelines && pipelined)) {
    reservations = std::make_unique<Reservations>(topology, limits.tasks, limits.tasks);
    for (ModuleId m = 0; m < modules.size(); ++m) plan_growth(m);
  }
  progress_of.resize(std::size_t{limits.requests} * progress_stride);
  periodic.reserve(limits.streams);
  dirty_lanes.reserve(lanes.size());
  dirty_partitions.reserve(partitions.size());
  if (limits.samples || Estimator::needed(policy)) samples.resize(16384);
  // One event can answer every request and send every batch; each submission besides can be answered at once.
  actions.resize(std::max<std::size_t>(limits.actions, std::size_t{limits.requests} + limits.batches + 1));
  scratch_tasks.resize(kMaxBatch);
  counters.streams.resize(limits.streams);
  counters.modules.resize(modules.size());
  counters.partitions.resize(partitions.size());
  estimates.modules.resize(modules.size());
}

void Scheduler::State::touch(TimeNs at) noexcept {
  if (at < now) {
    ++counters.clock_steps_back;
  } else {
    now = at;
  }
}

void Scheduler::State::advance() noexcept {
  for (LaneId id = 0; id < lanes.size(); ++id) {
    Lane& lane = lanes[id];
    if (lane.classes != 0) expire(lane);
    if (lane.wake_ns <= now) {
      lane.wake_ns = kNever;
      mark(id);
    }
  }
  for (PartitionId id = 0; id < partitions.size(); ++id) {
    if (reservations != nullptr && reservations->first[id] != kNone) mark_partition(id);
    if (partitions[id].deferred_until_ns != 0 && partitions[id].deferred_until_ns <= now) {
      partitions[id].deferred_until_ns = 0;
      mark_partition(id);
    }
  }
  pump();
  timer = earliest_timer();
}

void Scheduler::State::push(const Action& action) noexcept {
  insist(action_count < actions.size(), "the driver does not take its actions");
  const std::size_t at = action_first + action_count;
  actions[at < actions.size() ? at : at - actions.size()] = action;
  ++action_count;
}

bool Scheduler::State::next_action(Action& out) noexcept {
  while (action_count > 0) {
    out = actions[action_first];
    if (++action_first == actions.size()) action_first = 0;
    --action_count;
    if (out.kind != ActionKind::dispatch) return true;
    if (!batches.valid(out.batch.index, out.batch.generation)) continue;  // its partition was lost before it was sent
    const Batch& b = batches[out.batch.index];
    std::size_t n = 0;
    for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
      const Task& task = tasks[t];
      const Request& r = requests[task.request];
      scratch_tasks[n++] = {.request = {task.request, requests.generation(task.request)}, .token = r.token, .item = task.item, .items = task.items};
    }
    out.tasks = {scratch_tasks.data(), n};
    out.first_stage = reservations != nullptr ? b.stage : 0;
    out.path = {b.path.data() + out.first_stage, reservations != nullptr ? 1 : topology.routes[b.route].stages.size()};
    out.route = b.route;
    out.module = lanes[b.lane].module;
    out.start_ns = b.start_ns;
    out.expected_end_ns = b.expected_end_ns;
    return true;
  }
  return false;
}

// Everything that is said of the state in state.h, recounted.
void Scheduler::State::check() const {
  std::uint64_t in_flight = 0;
  for (StreamId s = 0; s < streams.size(); ++s) {
    std::uint32_t live = 0;
    std::uint32_t previous = kNone;
    for (std::uint32_t r = streams[s].first; r != kNone; previous = r, r = requests[r].next, ++live) {
      insist(requests[r].stream == s && requests[r].previous == previous, "a stream's list of requests");
      std::uint32_t placed = 0, open = 0;
      for (TaskId t = requests[r].tasks; t != kNone; t = tasks[t].next_of_request, ++open) {
        insist(tasks[t].request == r && tasks[t].state != TaskState::free, "a request's list of tasks");
        placed += tasks[t].state == TaskState::placed ? 1 : 0;
      }
      insist(placed == requests[r].placed, "a request's number of placed tasks");
      insist(open > 0, "a request in flight has nothing to wait for");
    }
    insist(live == streams[s].live && live == counters.streams[s].in_flight && counters.streams[s].balanced(), "a stream's ledger");
    in_flight += live;
  }
  insist(in_flight == counters.total.in_flight && counters.total.balanced(), "the ledger");
  std::vector<std::int64_t> waiting(applications.size(), 0);
  for (const Lane& lane : lanes) {
    waiting[modules[lane.module].application] += lane.items;
    std::size_t queued = 0;
    for (std::uint32_t c = 0; c < kPriorities; ++c) {
      const std::size_t n = lane.queue[c].audit(const_cast<Pool<Task>&>(tasks).data());
      insist(n != kNone && (n > 0) == ((lane.classes >> c & 1) != 0), "a lane's queue");
      queued += n;
    }
    insist(queued == lane.tasks, "a lane's number of tasks");
  }
  for (std::size_t a = 0; a < applications.size(); ++a) insist(waiting[a] == applications[a].queued_items, "an application's queued items");
  std::vector<std::uint32_t> held(partitions.size(), 0);
  for (std::uint32_t b = 0; b < batches.size(); ++b) {
    if (batches[b].state == BatchState::free) continue;
    ++held[batches[b].path[batches[b].stage]];
    std::uint32_t items = 0;
    for (TaskId t = batches[b].list.first; t != kNone; t = tasks[t].next_in_batch) {
      insist(tasks[t].state == TaskState::placed && tasks[t].batch == b, "a batch's tasks");
      items += tasks[t].items;
    }
    insist(items == batches[b].list.items && items <= topology.routes[batches[b].route].stages[batches[b].stage].latency.p50_ns.size(),
           "a batch's size");
  }
  for (std::size_t p = 0; p < partitions.size(); ++p) insist(held[p] == partitions[p].held, "a partition's batches");
  if (reservations != nullptr) check_bookings();
}

Scheduler::Scheduler(const Topology& topology, const Policy& policy, const Limits& limits)
    : state_(std::make_unique<State>(topology, policy, limits)) {}
Scheduler::~Scheduler() = default;

StreamId Scheduler::open_stream(TimeNs now, const StreamConfig& config) noexcept {
  state_->touch(now);
  return state_->open_stream(config);
}
void Scheduler::close_stream(TimeNs now, StreamId stream, Reason reason) noexcept {
  state_->touch(now);
  state_->close_stream(stream, reason);
  state_->pump();
}
RequestHandle Scheduler::submit(TimeNs now, const Submission& submission) noexcept {
  state_->touch(now);
  const RequestHandle handle = state_->submit(submission);
  state_->pump();
  return handle.index != kNone && state_->requests.valid(handle.index, handle.generation) ? handle : RequestHandle{};
}
void Scheduler::cancel(TimeNs now, RequestHandle request) noexcept {
  state_->touch(now);
  if (!state_->requests.valid(request.index, request.generation)) {
    ++state_->counters.stale_events;
    return;
  }
  state_->drop_request(request.index, Outcome::dropped, Reason::cancelled, kNone);
  state_->pump();
}
void Scheduler::stage_started(TimeNs now, BatchHandle batch, std::uint32_t stage) noexcept {
  state_->touch(now);
  state_->stage_started(batch, stage);
}
bool Scheduler::stage_finished(TimeNs now, BatchHandle batch, std::uint32_t stage, std::span<const TaskResult> results) noexcept {
  state_->touch(now);
  const bool goes_on = state_->stage_finished(batch, stage, results);
  state_->pump();
  return goes_on;
}
void Scheduler::partition_lost(TimeNs now, PartitionId partition) noexcept {
  state_->touch(now);
  state_->partition_lost(partition);
  state_->pump();
}
void Scheduler::partition_ready(TimeNs now, PartitionId partition) noexcept {
  state_->touch(now);
  state_->partition_ready(partition);
  state_->pump();
}
void Scheduler::set_estimates(TimeNs now, const Estimates& estimates) noexcept {
  state_->touch(now);
  // Copied element by element into memory reserved at start.
  const std::size_t n = std::min(estimates.modules.size(), state_->estimates.modules.size());
  std::copy_n(estimates.modules.begin(), n, state_->estimates.modules.begin());
  for (std::uint32_t a = 0; a < state_->applications.size(); ++a) state_->update_downstream(a);
}
void Scheduler::advance(TimeNs now) noexcept {
  state_->touch(now);
  state_->advance();
}
std::size_t Scheduler::take_samples(std::span<Sample> out) noexcept {
  const std::size_t n = std::min(out.size(), state_->sample_count);
  if (n == 0) return 0;
  for (std::size_t i = 0; i < n; ++i) out[i] = state_->samples[(state_->sample_first + i) % state_->samples.size()];
  state_->sample_first = (state_->sample_first + n) % state_->samples.size();
  state_->sample_count -= n;
  return n;
}
bool Scheduler::next_action(Action& out) noexcept { return state_->next_action(out); }
TimeNs Scheduler::next_timer() const noexcept { return state_->counters.total.in_flight == 0 ? kNever : state_->timer; }
bool Scheduler::idle() const noexcept { return state_->counters.total.in_flight == 0; }
const Counters& Scheduler::counters() const noexcept { return state_->counters; }
void Scheduler::check() const { state_->check(); }

}  // namespace leat::core
