// The scheduler: events and a timestamp in, actions out. The daemon and the simulator drive this same object.
//
// Life of a request: submit() -> queued(module) -> placed(batch, path) -> running(stage) ... -> answered, once.
// A request visits the modules of its application's DAG; at each it is one task or, behind a fan-out, several (one per
// detection); it is answered when the last merge is done, or when any task is dropped or fails.
//
// Ledger invariant, always checked: submitted = completed + late + dropped + failed + rejected + in flight, per stream.
//
// Thread rule: one thread. Nothing allocates after construction; every table has its maximum in Limits. Calls take
// `now` and may only move it forward; a smaller `now` is treated as the last one (clock steps must not break
// invariants). Errors: events about unknown handles, streams or partitions are counted and ignored
// (Counters::stale_events), except that a submission to a closed stream is rejected; a broken invariant aborts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/core/counters.h"
#include "engine/core/load/estimates.h"
#include "engine/core/model/topology.h"
#include "engine/core/policy/policy.h"
#include "engine/core/schedule.h"
#include "engine/core/types.h"

namespace leat::core {

struct Limits {
  std::uint32_t streams = 256;
  std::uint32_t requests = 4096;  // in flight, all streams
  std::uint32_t tasks = 16384;    // (request, module, item) in flight
  std::uint32_t batches = 1024;
  std::uint32_t partitions = 0;                 // of all plans to come; 0: those of the first
  std::uint32_t actions = 16384;                // waiting to be taken; the driver drains after every event
  std::uint32_t coordinated = 0;                // of an application's streams, at most, may be coordinated (schedule.h)
  bool samples = false;                         // leave samples even where the policy looks at no estimates
  std::uint32_t applications = 0, modules = 0;  // of all plans to come; fewer than the first has: as many as that
};

enum class Supersede : std::uint8_t { fifo, latest, latest_per_key, never_drop };
enum class Priority : std::uint8_t { background = 0, normal = 1, high = 2, protected_ = 3 };

struct StreamConfig {
  std::uint32_t application = 0;
  TimeNs slo_ns = 0;        // 0: the application's. The deadline is capture + slo
  TimeNs max_age_ns = 0;    // 0: none. An answer older than this at delivery is worthless (counted from capture)
  TimeNs period_ns = 0;     // 0: not periodic. Used by look-ahead
  std::uint32_t depth = 8;  // requests of this stream waiting or running; one more is rejected or supersedes
  Supersede supersede = Supersede::fifo;
  Priority priority = Priority::normal;
  std::uint32_t user = 0;            // whose it is: users share partitions by weight (fair shares)
  std::uint32_t user_weight = 1000;  // the same in all streams of a user
  std::uint32_t miss_window = 0,
                miss_allowed = 0;  // weakly hard: at most `allowed` misses in any `window` requests; 0: off
  Terms terms;                     // coordinated: the server says when it wants a frame; period_ns is not looked at
  bool waits_for_grants = false;   // its client looks whether a frame is wanted (grants/grants.h); not with terms
};

struct Submission {
  StreamId stream = kNone;
  std::uint64_t token = 0;  // the driver's own; comes back in every action about this request
  TimeNs capture_ns = 0;    // later than now is taken as now
  TimeNs deadline_ns = 0;   // 0: capture + SLO; otherwise may only tighten it
  std::uint32_t items = 1;  // ELSA: one request may be n items, run in one batch
  std::uint32_t key = 0;    // for latest_per_key
  std::uint64_t branch_draw =
      0;  // decides branches taken by chance; the driver draws it, so that the core stays deterministic
};

struct TaskRef {
  RequestHandle request;
  std::uint64_t token = 0;
  std::uint32_t item = 0;   // which of its request's sub-requests at this module (0 without fan-out)
  std::uint32_t items = 1;  // ELSA's n: how many rows of the batch it fills
  std::uint32_t units = 1;  // what it takes of its module's latency tables: as many, or more (TaskSizes)
};

enum class ActionKind : std::uint8_t { dispatch, answer, transfer, schedule };

struct Action {
  ActionKind kind = ActionKind::answer;
  // dispatch: run `tasks` as one batch over `path` (one partition per stage of `route`, from first_stage on). The
  // driver moves the batch from stage to stage. With reservations a path is one stage long, and a later stage is
  // dispatched on its own: the driver starts it once the features of all its tasks have arrived. A batch may be sent to
  // a partition before its predecessor there has ended, at most Policy::queue_ahead deep.
  BatchHandle batch;
  RouteId route = kNone;
  ModuleId module = kNone;
  std::span<const PartitionId> path;  // valid until the next call of any event
  std::span<const TaskRef> tasks;     // likewise
  TimeNs start_ns = 0;                // reserved start of the first stage (reservation), else now
  TimeNs expected_end_ns = 0;
  std::uint32_t first_stage = 0;
  // The partition may go on by itself, once this batch has ended, with all the tasks that its results make at the next
  // module, as one batch of that route; stage_finished() is told whether it has. kNone: it asks.
  RouteId then = kNone;
  bool alone = false;    // dispatch: a request of it may have ended a partition, so no other batch runs beside it
  bool went_on = false;  // dispatch: these tasks are what it has gone on with: they run already
  // transfer (reservations only): the features that `request` made at stage first_stage of `route` go from one
  // partition to another, not before start_ns.
  PartitionId from = kNone, to = kNone;
  // schedule: that of `stream` is new; schedule() has it.
  // answer (and transfer: request and token)
  RequestHandle request;
  std::uint64_t token = 0;
  StreamId stream = kNone;
  Outcome outcome = Outcome::pending;
  Reason reason = Reason::none;
  ModuleId where = kNone;  // module at which it was dropped or failed
};

// What a stage's end reports for each task, in the batch's order.
struct TaskResult {
  bool ok = true;
  Reason reason = Reason::none;  // when !ok
  std::uint32_t fan_out =
      1;  // after the last stage: sub-requests this task makes for the modules behind it (0: they are skipped)
};

// How much of its module's batches one item of a task takes, where items differ: a line of text takes as much as it is
// wide. In the units that the module's latency tables and batch sizes count, 1 or more; where there is none of this,
// every item is one. The core asks once, when the task comes into being.
class TaskSizes {
 public:
  virtual ~TaskSizes() = default;
  [[nodiscard]] virtual std::uint32_t units(std::uint64_t token, ModuleId module,
                                            std::uint32_t item) const noexcept = 0;
};

// Which streams that wait for grants have a frame now that they could submit. Asked where one's turn may have come; a
// wrong answer costs that stream its turn, or others a grant's time.
class Offers {
 public:
  virtual ~Offers() = default;
  // When the newest of them was taken, by its client's word; 0: it will be, when it is asked for. None: it has none.
  [[nodiscard]] virtual std::optional<TimeNs> picture_ns(StreamId stream) const noexcept = 0;
};

struct ActivePlan;  // a plan, made ready to take over (core.h)
struct ReadyPlan {
  void operator()(ActivePlan* plan) const noexcept;
};

using ReadyPlanPtr = std::unique_ptr<ActivePlan, ReadyPlan>;

class Scheduler {
 public:
  // Takes copies. Precondition: topology.problem().empty().
  Scheduler(const Topology& topology, const Policy& policy, const Limits& limits = {});
  ~Scheduler();
  // Set-up; outlives this.
  void measure_tasks(const TaskSizes& sizes) noexcept;
  void watch_offers(const Offers& offers) noexcept;  // without: everybody always has a frame
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // ---- events ----
  // kNone: no room, unknown application, or terms for one that cannot be coordinated (can_coordinate).
  [[nodiscard]] StreamId open_stream(TimeNs now, const StreamConfig& config) noexcept;
  void close_stream(TimeNs now, StreamId stream,
                    Reason reason) noexcept;  // answers what waits; what runs is answered at its end
  // Exactly one answer follows for each call, at once (rejected) or later. The handle is invalid when rejected at once.
  RequestHandle submit(TimeNs now, const Submission& submission) noexcept;
  void cancel(TimeNs now, RequestHandle request) noexcept;
  // A coordinated stream's client says what tracking had lost at an answer. False: not coordinated, out of range, or
  // there was no answer to speak of; ignored.
  bool observe(TimeNs now, StreamId stream, const Observation& seen) noexcept;
  void stage_started(TimeNs now, BatchHandle batch, std::uint32_t stage) noexcept;
  // Its partition has begun it beside the one before it, so that it too may be what ends the partition. stage_started()
  // follows when that one has ended.
  void stage_beside(TimeNs now, BatchHandle batch, std::uint32_t stage) noexcept;
  // A batch's partition is free only now: the end of its work is proven. Results only count at the last stage; there an
  // empty span means that all tasks went well and none fans out to more than one.
  // True: the batch goes on, the driver moves it to the next stage of its path. False: it is over here (last stage, or
  // given back).
  // went_on_ns, not 0: the partition has begun what Action::then says, at that time. A dispatch with went_on follows
  // before all others, of those of its tasks whose requests still live; none where there are no such.
  bool stage_finished(TimeNs now, BatchHandle batch, std::uint32_t stage, std::span<const TaskResult> results,
                      TimeNs went_on_ns = 0) noexcept;
  // Batches there are retried while slack allows, else failed. True: frames of a user who has ended others before have
  // ended it, so that it is no fault of the partition.
  bool partition_lost(TimeNs now, PartitionId partition) noexcept;
  void partition_ready(TimeNs now, PartitionId partition) noexcept;  // all partitions start lost
  void set_estimates(TimeNs now,
                     const Estimates& estimates) noexcept;  // plain data made off the hot path (estimates.h)
  void advance(TimeNs now) noexcept;                        // timers: expiries, last safe moments, look-ahead

  // ---- another plan, under load ----
  // The new topology has the same applications and modules, in the same order, and others behind them, at most as
  // Limits says; its partitions keep their ids, at most Limits::partitions. Everything else may differ. An application
  // that was retired may have become another. What has not been sent is queued anew, what runs ends under the plan that
  // it began under, learned latency scales stay, streams go to their applications' heirs with what they submit from
  // then on, and a partition that no route uses any more takes nothing and ends what it holds. May run on another
  // thread, beside the scheduler's: everything that allocates. Precondition: same_requests().
  [[nodiscard]] ReadyPlanPtr prepare(const Topology& topology) const;
  [[nodiscard]] ReadyPlanPtr prepare(const Topology& topology, const Policy& policy) const;
  [[nodiscard]] bool same_requests(const Topology& topology) const noexcept;
  // Takes the plan over and leaves nullptr. False: too many earlier plans still have batches on their way; nothing
  // changed. measured_anew: its latencies are of now, so what was learned about a module whose latencies differ is
  // forgotten.
  [[nodiscard]] bool replace(TimeNs now, ReadyPlanPtr& plan, bool measured_anew = false) noexcept;
  // An earlier plan that nothing uses any more, to be freed on another thread; nullptr: none.
  [[nodiscard]] ReadyPlanPtr take_retired() noexcept;
  // No route uses the partition, and it holds nothing.
  [[nodiscard]] bool quiet(PartitionId partition) const noexcept;
  // Requests of an application that are not answered yet, whatever its streams are now.
  [[nodiscard]] std::uint32_t in_flight(std::uint32_t application) const noexcept;
  void give_up(TimeNs now, std::uint32_t application, Reason reason) noexcept;  // all of those fail

  // Copies up to out.size() of the oldest samples not taken yet and returns how many; the oldest are lost when nobody
  // takes them. None are left where needs_estimates() (policy/registry.h) says that the policy looks at none, but with
  // Limits::samples.
  [[nodiscard]] std::size_t take_samples(std::span<Sample> out) noexcept;

  // ---- actions and what the driver needs to wait ----
  [[nodiscard]] bool next_action(Action& out) noexcept;  // false: none left
  // When a coordinated stream's next frames are wanted, and how it stands; of one that waits for grants its turns.
  [[nodiscard]] StreamSchedule schedule(StreamId stream) const noexcept;
  [[nodiscard]] bool can_coordinate(std::uint32_t application) const noexcept;
  [[nodiscard]] TimeNs next_timer() const noexcept;  // call advance() at or after this; kNever: nothing planned
  [[nodiscard]] bool idle() const noexcept;          // nothing in flight
  [[nodiscard]] bool full() const noexcept;          // partitions are up, and none of them takes a batch now
  [[nodiscard]] const Counters& counters() const noexcept;
  // When the task of its queues that waits longest came to the module; 0: none waits.
  [[nodiscard]] TimeNs oldest_queued_ns(ModuleId module) const noexcept;
  // ---- its state ----
  // No action waits to be taken, and no batch of an earlier plan is on its way.
  [[nodiscard]] bool settled() const noexcept;
  // Everything that later decisions depend on (snapshot.h), and how many bytes of `to` that took; 0: there is no room.
  // Precondition: settled().
  [[nodiscard]] std::size_t save(std::span<std::byte> to) const noexcept;
  // The state of another, which had this plan in force, limits of the same sizes and this build, and left these very
  // bytes: what they say is not looked at. This one has had no event. False: they are of another size; what is here
  // now is of no use.
  [[nodiscard]] bool load(std::span<const std::byte> from) noexcept;

  // Aborts if an invariant is broken: ledger, queue links, partition occupancy. O(n); tests and safety runs call it.
  void audit() const;

  struct State;  // engine/core/core.h, for the core's own rooms

 private:
  std::unique_ptr<State> state_;
};

}  // namespace leat::core
