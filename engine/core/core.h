// What stands behind the door (scheduler.h): the rooms, put together, and the flows from an event through them to
// actions. Every flow is one way: event -> ledger -> queue -> the component's scheduler -> machine -> actions.
//
//   submission.cpp  a request comes in, and its tasks wait
//   dispatch.cpp    who is asked for a batch, what it may do, what the driver is told; the clock
//   completion.cpp  a batch ends, and its requests go on or are answered
//   sequels.cpp     what a partition goes on with by itself
//   failover.cpp    partitions lost, and back
//   costs.cpp       what users are charged
//   gated.cpp       whose tasks pass one at a time
//   replace.cpp     another plan, under load
//   scheduler.cpp   the door: set-up, and what is asked and told besides
//
// Rooms: model/ what a plan says, ledger/ streams, requests, answers, machine/ partitions, batches, queue/ tasks in
// queues, load/ what is observed, policy/ who decides, behind one interface, grants/ who is asked for a picture.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/coordination.h"
#include "engine/core/grants/grants.h"
#include "engine/core/ledger/actions.h"
#include "engine/core/ledger/latency_scales.h"
#include "engine/core/ledger/ledger.h"
#include "engine/core/ledger/quarantine.h"
#include "engine/core/ledger/shares.h"
#include "engine/core/load/load_statistics.h"
#include "engine/core/load/paying_batches.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/policy/scheduler_interface.h"
#include "engine/core/queue/gate.h"
#include "engine/core/queue/task_queues.h"
#include "engine/core/queue/task_set.h"
#include "engine/core/scheduler.h"
#include "engine/core/snapshot.h"

namespace leat::core {

inline constexpr std::uint8_t kMaxRetries = 3;
inline constexpr std::uint8_t kMaxDeaths = 2;  // partitions lost while running one request, which is then poison

// Everything that belongs to one plan. Made off the scheduler's thread; one of them is in force.
struct ActivePlan {
  ActivePlan(const Topology& topology, const Policy& by, const Limits& limits, Scheduler::State& core);

  const Policy policy;
  Model model;
  TaskQueues queues;
  LoadStatistics load;
  PayingBatches paying;
  std::vector<std::unique_ptr<ComponentScheduler>> schedulers;  // by ComponentId
  std::unique_ptr<Coordination> coordination;                   // nullptr: no stream can be coordinated
  std::vector<QueueId> dirty_queues;
  std::vector<ConsumerId> sequels;  // [consumer]: of what comes next on the same partition (sequels.cpp); kNone: none
  std::uint32_t batches = 0;        // on their way that were formed under it
  // By ModuleId: batches that were formed under earlier plans say nothing of its latencies.
  std::vector<std::uint8_t> measured_anew;

  void visit_state(Snapshot& state) {
    state(queues, load, paying, schedulers, coordination, dirty_queues, batches, measured_anew);
  }
};

[[nodiscard]] std::vector<ConsumerId> find_sequels(const Model& model, const TaskQueues& queues, TimeNs within_ns);

// Every plan speaks of as many partitions as the machine has.
[[nodiscard]] Topology padded(Topology t, std::size_t partitions);

// Who is to be asked, in which order tasks came, and when time itself is to be looked at.
struct Agenda {
  std::vector<PartitionId> partitions;  // that became free
  std::vector<std::uint8_t> partition_listed;
  std::uint32_t kept_idle = 0;  // partitions that a scheduler keeps so until a moment
  std::uint32_t asked = 0;      // partitions that take their next batch at a moment
  TimeNs timer_ns = kNever;     // no planned moment is before this
  TimeNs watch_ns = kNever;     // when watch() has something to look at
  std::uint64_t serial = 0;     // of the task that was queued last

  void visit_state(Snapshot& state) {
    state(partitions, partition_listed, kept_idle, asked, timer_ns, watch_ns, serial);
  }
};

// What users may take of the partitions, and who of them is kept apart.
struct UserRules {
  UserRules(std::uint32_t streams, std::size_t partitions)
      : shares(streams), scales(streams), quarantine(streams, partitions) {}

  Shares shares;
  LatencyScales scales;
  Quarantine quarantine;
  Gate gate;
  std::uint32_t losses = 0;  // of partitions

  void visit_state(Snapshot& state) { state(shares, scales, quarantine, gate, losses); }
};

// The plan in force, and those that batches still run under.
struct Plans {
  std::array<ReadyPlanPtr, 4> held;
  std::uint32_t number = 0;
};

// Room that one call uses, made once.
struct Scratch {
  std::vector<TaskRef> batch;
  std::vector<TaskId> moving;           // while a plan is replaced
  std::vector<std::uint32_t> requests;  // of a batch that has ended
};

struct Scheduler::State final : Operations, private Grants::Asked {
  State(const Topology& topology, const Policy& policy, const Limits& limits);

  // ---- submission.cpp ----
  RequestHandle submit(const Submission& s) noexcept;
  [[nodiscard]] bool make_room(const Submission& s, TimeNs capture) noexcept;
  void begin(std::uint32_t request) noexcept;
  [[nodiscard]] bool branch_taken(const Request& r, ModuleId module) const noexcept;
  void activate(std::uint32_t request, ModuleId module) noexcept;
  void enter(TaskId task) noexcept;  // a new one: to its queue, or held until its planned batch begins
  void enqueue(TaskId task) noexcept;
  [[nodiscard]] Progress& progress(std::uint32_t request, ModuleId module) noexcept {
    return ledger.progress(request, plan->model.module(module).local);
  }

  // ---- dispatch.cpp ----
  void dispatch() noexcept;
  std::uint32_t send_forming(QueueId queue, ConsumerId consumer, TimeNs start, const Path& path) noexcept;
  void mark(QueueId queue) noexcept;
  void mark_partition(PartitionId partition) noexcept;
  void set_idle(PartitionId partition) noexcept;
  void place(std::uint32_t batch, TaskId task) noexcept;
  void hold(PartitionId partition) noexcept;
  void tell_dispatch(std::uint32_t batch) noexcept;
  [[nodiscard]] bool next_action(Action& out) noexcept;
  void touch(TimeNs at) noexcept;
  void advance() noexcept;
  void coordinate() noexcept;
  void give_turns() noexcept;
  void expire(QueueId queue) noexcept;
  void want_timer(TimeNs at) noexcept { agenda.timer_ns = at < agenda.timer_ns ? at : agenda.timer_ns; }
  [[nodiscard]] TimeNs earliest_timer() const noexcept;
  [[nodiscard]] ComponentScheduler& of_module(ModuleId m) noexcept {
    return *plan->schedulers[plan->model.component_of(m)];
  }

  // ---- Operations, in dispatch.cpp ----
  void drop(TaskId task, Reason reason) noexcept override;
  void take(TaskId task) noexcept override;
  std::uint32_t start(QueueId queue, ConsumerId consumer, TimeNs start, const Path& path) noexcept override;
  void canary(std::uint32_t batch) noexcept override { machine.change_batch(batch).canary = true; }
  void wake(QueueId queue, TimeNs at) noexcept override;
  void wake_at(TimeNs at) noexcept override { want_timer(at); }
  void keep_idle(PartitionId partition, TimeNs until) noexcept override;
  void idled_on_purpose() noexcept override { ++ledger.count().idled_on_purpose; }
  void ask(PartitionId partition) noexcept override { mark_partition(partition); }
  void ask_queue(QueueId queue) noexcept override { mark(queue); }
  void book(TaskId task) noexcept override;
  void unbook(TaskId task) noexcept override;
  void retry(TaskId task) noexcept override;
  std::uint32_t send(RouteId route, std::uint32_t stage, PartitionId partition, std::span<const TaskId> tasks,
                     TimeNs run) noexcept override;
  void transfer(TaskId task, RouteId route, std::uint32_t stage, PartitionId from, PartitionId to,
                TimeNs start) noexcept override;

  // ---- completion.cpp ----
  void stage_started(BatchHandle handle, std::uint32_t stage) noexcept;
  bool stage_finished(BatchHandle handle, std::uint32_t stage, std::span<const TaskResult> results,
                      TimeNs went_on_ns) noexcept;
  void finish_tasks(std::uint32_t batch, std::span<const TaskResult> results) noexcept;
  void pass_on(std::uint32_t batch) noexcept;
  void free_batch(std::uint32_t batch) noexcept;
  void fetch(const Batch& batch) const noexcept;
  [[nodiscard]] const ActivePlan& plan_of(const Batch& b) const noexcept { return *plans.held[b.plan]; }
  [[nodiscard]] ComponentScheduler* scheduler_of(const Batch& b) noexcept {  // nullptr: that plan is no longer in force
    return b.plan == plans.number ? &of_module(b.module) : nullptr;
  }
  void complete_module(std::uint32_t request, ModuleId module, bool ran) noexcept;
  void drop_request(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept;
  void finish(std::uint32_t request) noexcept;  // answers a doomed or complete request nothing of which runs
  void dequeue(TaskId task) noexcept;
  void release(TaskId task) noexcept;  // from whatever it is in; frees it
  void close_stream(StreamId id, Reason reason) noexcept;
  void watch() noexcept;  // answers what a scheduler has left undecided far too long

  // ---- sequels.cpp ----
  [[nodiscard]] RouteId sequel(const Batch& batch, ConsumerId consumer) const noexcept;
  void go_on(RouteId then, PartitionId partition, TimeNs since) noexcept;

  // ---- failover.cpp ----
  bool partition_lost(PartitionId partition) noexcept;
  void partition_ready(PartitionId partition) noexcept;
  void reassign(QueueId queue) noexcept;
  [[nodiscard]] bool blame(const Batch& batch) noexcept;  // its partition was lost while it ran; true: convicts a user
  void give_back(std::uint32_t batch) noexcept;  // a lost batch's tasks: retried while slack allows, else failed

  // ---- costs.cpp ----
  void enter_share(std::uint32_t request, const ApplicationSpec& app) noexcept;
  void charge(const Batch& batch, TimeNs ran) noexcept;
  void part(const Request& r) noexcept;
  void mark_dear(const Request& of) noexcept;
  void correct_share(const Request& request, bool done) noexcept;
  [[nodiscard]] std::uint32_t user_of(const Request& r) const noexcept { return ledger.stream(r.stream).config.user; }
  static void hasten(Task& task, TimeNs longer) noexcept {  // so that it can be in time
    task.deadline_ns -= longer;
    if (task.give_up_ns != kNever) task.give_up_ns -= longer;
  }
  [[nodiscard]] TimeNs longer_ns(const Request& r, ModuleId module) noexcept;  // than planned, for one of its tasks
  [[nodiscard]] Shares::Key account_of(StreamId stream) const noexcept;
  [[nodiscard]] Shares::Key account_of(const Request& r) const noexcept { return account_of(r.stream); }
  [[nodiscard]] std::uint8_t level_of(const Request& r) const noexcept {
    return static_cast<std::uint8_t>(ledger.priority_of(ledger.stream(r.stream)) + (r.within_share ? kPriorities : 0));
  }
  [[nodiscard]] LatencyScales::Key scale_of(const Request& r) const noexcept;

  [[nodiscard]] std::uint8_t level_of(StreamId stream) const noexcept override;

  // ---- gated.cpp ----
  void enter_gate(TaskId task) noexcept;  // to its queue, or before the gate until it is its turn
  bool open_gate() noexcept;              // true: a task has passed
  void expire_gate() noexcept;
  [[nodiscard]] bool gate_opens(TaskId task) const noexcept;
  [[nodiscard]] TimeNs gate_timer() const noexcept;
  void drop_waiting(std::uint32_t user) noexcept;

  // ---- replace.cpp ----
  [[nodiscard]] bool replace(ReadyPlanPtr& next, bool measured_anew) noexcept;
  void collect_unsent() noexcept;
  void detach(TaskId task) noexcept;
  void inherit(const ActivePlan& old) noexcept;
  void coordinate_as(ActivePlan& old) noexcept;

  // ---- scheduler.cpp ----
  void audit() const;
  void visit_state(Snapshot& state);
  [[nodiscard]] StreamId open_stream(const StreamConfig& config) noexcept;
  [[nodiscard]] std::optional<TimeNs> picture_ns(StreamId stream) const noexcept override {
    if (offered == nullptr) return now;
    const std::optional<TimeNs> taken = offered->picture_ns(stream);
    return taken && (*taken <= 0 || *taken > now) ? now : taken;
  }
  [[nodiscard]] bool has_waiting(StreamId stream) const noexcept override {
    const std::uint32_t last = ledger.stream(stream).last;
    return last != kNone && !ledger.request(last).started;
  }

  [[nodiscard]] TimeNs worth_ns(StreamId stream, TimeNs capture_ns) const noexcept override {
    return ledger.stream(stream).served.worth_ns(capture_ns, now);
  }

  // ---- the rooms ----
  const Policy policy;  // the first plan's
  const Limits limits;
  const TaskSizes* sizes = nullptr;
  const Offers* offered = nullptr;
  TimeNs now = 0;
  Agenda agenda;
  Actions actions;
  Ledger ledger;
  Machine machine;
  UserRules users;
  Coordination* coordination = nullptr;  // of the plan in force; nullptr: no stream can be coordinated
  Grants grants;
  Pool<Task> tasks;
  TaskSet unsent;  // those that exist and are not placed
  Plans plans;
  ActivePlan* plan = nullptr;  // the one in force
  Scratch scratch;
};

}  // namespace leat::core
