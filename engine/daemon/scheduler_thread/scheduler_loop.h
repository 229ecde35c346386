// The scheduler thread: a duty cycle around core::Scheduler. It polls clients' submission rings and workers' report
// rings, feeds the core, carries out its actions, pushes answers, and sends at most one wake per sleeping peer and
// turn.
//
// A turn reads the clock once, bounds every drain by a constant, and returns how much it did; it neither allocates,
// locks, logs nor makes a system call but the documented wakes. What to do when a turn found nothing (spin, yield,
// park) is the waiting policy's. Tests and the thread itself call the same turn().
//
// Threads: construct, then run() on one thread (or turn() in a test); command() from the control thread only; events
// are popped by the control thread, woken through the doorbell given.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/scheduler.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/metrics/turn_meter.h"
#include "engine/daemon/scheduler_thread/control_queues.h"
#include "engine/daemon/scheduler_thread/feature_ledger.h"
#include "engine/daemon/scheduler_thread/plan_tables.h"
#include "engine/daemon/scheduler_thread/worker_port.h"
#include "engine/record/recorded_core.h"
#include "engine/worker/link/channel.h"
#include "shm/src/client/client_port.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/wait_policy.h"

namespace leat::daemon {

inline constexpr std::uint32_t kSlotBits = 8;  // a request's token: stream << kSlotBits | slot
static_assert(shm::kMaxSlotsPerStream <= 1u << kSlotBits);
inline constexpr std::uint32_t kReportsPerTurn = 32;  // of one worker

struct LoopOptions {
  core::Limits limits;
  std::uint32_t clients = 64;
  shm::WaitPolicy wait;
  std::vector<std::uint32_t> cores;  // where the thread is pinned; empty: anywhere
  bool ahead = false;                // its cores are the workers' too: it goes ahead of them, where that is permitted
  std::int64_t batch_limit_ns = 10'000'000'000;  // one batch of a worker that does not hang
  PlanTables plan;                               // the first
  bool measures_tasks = false;                   // of plans to come some may have tasks that differ in size
  bool samples = false;            // the policy reads estimates: leave the core's samples for the control thread
  record::Ring* record = nullptr;  // what goes into the core and comes out is recorded there from the beginning
};

class SchedulerLoop final : private core::TaskSizes, private core::Offers {
 public:
  // `events_bell`: rung when an event was pushed; the control thread watches it and it outlives the loop. `bell`: rung
  // by command(). Workers and clients have bells of their own.
  static Result<std::unique_ptr<SchedulerLoop>> create(const core::Topology& topology, const core::Policy& policy,
                                                       LoopOptions options, Metrics& metrics,
                                                       const shm::Doorbell& events_bell, shm::Doorbell bell);
  ~SchedulerLoop();

  // ---- control thread ----
  void command(const Command& command) noexcept { control_.command(command); }
  [[nodiscard]] bool next_event(SchedulerEvent& out) noexcept { return control_.next_event(out); }
  [[nodiscard]] bool sample(core::Sample& out) noexcept { return control_.sample(out); }
  // For Command::Kind::replace_plan. None: the topology is no successor of the plan in force (Scheduler::prepare).
  [[nodiscard]] std::unique_ptr<LoopPlan> prepare(const core::Topology& topology, const core::Policy& policy,
                                                  PlanTables tables) const;

  // ---- scheduler thread ----
  void run();                                     // until the stop command
  std::uint32_t turn(std::int64_t now) noexcept;  // how much was done
  [[nodiscard]] bool stopped() const noexcept { return ending_.stopped; }
  const core::Scheduler& core() const noexcept { return core_->core(); }

 private:
  friend struct LoopTestAccess;  // tests/fuzz/stepped/stepped_leatd.cpp
  struct Slot {
    core::RequestHandle handle;
    std::int64_t submitted_ns = 0;
    std::int64_t capture_ns = 0, deadline_ns = 0;
    bool dispatched = false, answered = false;
    shm::Color color;  // as stated for it or its stream
    std::int64_t dispatched_ns = 0;
    FeatureLedger::Chain features = FeatureLedger::kEmpty;  // made between two stages, and in no batch
  };
  struct Stream {
    bool open = false, closing = false;
    bool unserved = false;                // its application is served no more
    std::uint32_t client = 0, index = 0;  // index: the client's own
    core::StreamId core = core::kNone;
    std::uint32_t mark = 0;  // closing: ClientPort::mark() when its client asked
    GrantedStream granted;
    const shm::StreamPool* slots_of = nullptr;  // the port's, while open
    bool missed = false;                        // a bitstream: an access unit did not reach its workers
    shm::Color color;                           // of its latest frame, as stated
    std::uint64_t offered = 0;                  // waits for grants: pictures that its client had, as far as is believed
    std::int64_t offered_ns = 0;                // when that was looked at
    std::array<Slot, shm::kMaxSlotsPerStream> slots;
  };
  struct Client {
    shm::ClientPort* port = nullptr;
    bool dirty = false;  // answers pushed since the last flush
    bool told = false;   // its violation or hang-up was noticed to the control thread
    bool bell_watched = false;
    bool apart = false;  // its bell is the control thread's to see to
    bool leaving = false;
    bool refused = false;          // draining: what comes now was submitted after the drain began
    std::uint32_t drain_mark = 0;  // of its ring, when the drain began
    std::uint64_t submissions = 0, completions = 0, late_cancels = 0;
    std::array<std::uint32_t, shm::kMaxStreamsPerClient> stream;  // index into streams_, or kNone
  };
  struct Task {
    std::uint32_t stream = 0;  // index into streams_
    std::uint32_t slot = 0, item = 0, items = 1;
    std::uint32_t position = 0;  // in the core's order; the worker's is that of the rows
    std::uint32_t row_in = worker::kNoRow, row_out = worker::kNoRow;
    Reason reason = Reason::none;  // of an earlier stage, or this one
  };
  // On its way over `path`, at one stage at a time. Its slots are held until it is over.
  struct Batch {
    bool live = false;
    std::uint32_t generation = 0;
    const PlanTables* by = nullptr;  // of the plan that it was formed under
    core::RouteId route = 0;
    core::ModuleId module = 0;
    std::uint32_t stage = 0, last_stage = 0;  // of the path; the route may go on with other batches
    std::uint32_t count = 0, reported = 0, items = 0;
    bool alone = false;                            // no other runs beside it
    std::uint32_t next = core::kNone;              // behind it, where the partition's ring is full
    core::RouteId then = core::kNone;              // what its worker may go on with by itself
    std::int64_t dispatched_ns = 0, began_ns = 0;  // began: it is its partition's oldest
    std::array<core::PartitionId, core::kMaxStages> path{};
    std::array<Task, worker::kMaxBatch> tasks;
    std::array<core::TaskResult, worker::kMaxBatch> results;
    [[nodiscard]] core::PartitionId partition() const noexcept { return path[stage]; }
  };
  // What a worker has gone on with by itself, behind a batch that has ended. Its slots are held until it is over,
  // whether their requests still live or not.
  struct Sequel {
    bool live = false;
    std::uint32_t of_batch = 0, of_generation = 0;  // behind which
    std::uint32_t batch = core::kNone;              // the core's; kNone: nobody wants its results any more
    std::uint32_t count = 0, reported = 0;
    std::int64_t began_ns = 0;
    std::array<Task, worker::kMaxBatch> tasks;  // position: in that batch, or kNone
  };
  // Access units that a worker has not read yet, oldest first; their slots are held until it has.
  struct AccessUnits {
    struct Unit {
      std::uint32_t stream = 0, slot = 0;  // index into streams_
    };
    std::array<Unit, worker::kMaxAccessUnits> all;
    std::uint32_t first = 0, count = 0;
  };
  struct Partition {
    WorkerPort* port = nullptr;
    bool dirty = false, broken = false, bell_watched = false;
    std::uint32_t first_waiting = core::kNone,
                  last_waiting = core::kNone;  // batches that came over their path while the ring was full
    std::uint32_t queued = 0;                  // batches sent and not finished
    std::int64_t last_ended_ns = 0;            // its latest batch; 0: none since it came up
    std::int64_t hangs_at_ns = core::kNever;   // when its oldest batch has run too long
    bool excused = false;                      // it has had that time twice, since leatd stood still as well
    std::array<std::uint32_t, worker::kMaxQueuedBatches> order{};  // their indexes, oldest first
    Sequel sequel;                                                 // before them all
    AccessUnits units;
  };
  SchedulerLoop(const core::Topology& topology, const core::Policy& policy, LoopOptions options, Metrics& metrics,
                const shm::Doorbell& events_bell, shm::Doorbell bell);
  std::uint32_t units(std::uint64_t token, core::ModuleId module, std::uint32_t item) const noexcept override;
  Status open_poll();
  void watch_worker(std::uint32_t partition) noexcept;
  void unwatch_worker(std::uint32_t partition) noexcept;
  void drain_bell(std::uint64_t token) noexcept;

  // Those that have had a worker: a turn looks at no others, which are many.
  std::span<Partition> used_partitions() noexcept { return std::span(partitions_).first(used_partitions_); }
  std::span<const Partition> used_partitions() const noexcept { return std::span(partitions_).first(used_partitions_); }

  // Each returns how much it did.
  std::uint32_t take_commands(std::int64_t now) noexcept;
  std::uint32_t take_reports(std::int64_t now) noexcept;
  std::uint32_t take_submissions(std::int64_t now) noexcept;

  void handle(const Command& command, std::int64_t now) noexcept;
  void add_client(const Command& command, std::int64_t now) noexcept;
  void add_worker(const Command& command, std::int64_t now) noexcept;
  void open_stream(const Command& command, std::int64_t now) noexcept;
  void close_stream(std::uint32_t stream, Reason reason, std::int64_t now) noexcept;
  void remove_client(std::uint32_t client, std::int64_t now) noexcept;
  void worker_lost(std::uint32_t partition, std::int64_t pid, std::int64_t now) noexcept;
  // Other plans: scheduler_plans.cpp.
  void take_plan(LoopPlan* plan) noexcept;
  void swap_plans(std::int64_t now) noexcept;
  void take_over(LoopPlan& plan) noexcept;
  void retire_plan() noexcept;
  void tell_quiet() noexcept;
  [[nodiscard]] std::uint32_t heir_of(std::uint32_t application) const noexcept;
  [[nodiscard]] bool closed(std::uint32_t application) const noexcept {
    return application < plans_.in_force->closed.size() && plans_.in_force->closed[application] != 0;
  }

  std::uint32_t drain_port(std::uint32_t client, std::uint32_t most,
                           std::int64_t now) noexcept;  // how many it looked at
  void tell_violation(std::uint32_t client, std::int64_t now) noexcept;
  // Calls on its bell take the longer the more of its threads wait there: timed, and once too long never made again.
  bool wake(std::uint32_t client) noexcept;  // true: a wake was sent
  void look_at_bell(std::uint32_t client) noexcept;
  void set_apart(std::uint32_t client) noexcept;
  void take_bell_back(std::uint32_t client) noexcept;
  void watch_bell(std::uint32_t client) noexcept;
  void unwatch_bell(Client& client) noexcept;
  template <class Call>
  bool in_time(Call call) noexcept;
  void submit(Client& client, const shm::Taken& taken, std::int64_t now) noexcept;
  void note_color(Stream& stream, shm::Color color) noexcept;
  // Coordinated streams: scheduler_coordinated.cpp.
  void tell_schedule(core::StreamId stream, std::int64_t now) noexcept;
  // Streams that wait for grants: scheduler_grants.cpp.
  void tell_turn(std::uint32_t stream, std::int64_t now) noexcept;
  void count_offers(Stream& stream, std::int64_t now) noexcept;
  std::optional<core::TimeNs> picture_ns(core::StreamId stream) const noexcept override;
  void observe(const Stream& stream, const shm::Taken& taken, std::int64_t now) noexcept;
  // What workers go on with by themselves: scheduler_sequels.cpp.
  void say_sequel(const Batch& batch, worker::DispatchCell& cell) const noexcept;
  bool begin_sequel(std::uint32_t partition, const Batch& batch, std::int64_t since) noexcept;
  void join_sequel(std::uint32_t index, std::int64_t now) noexcept;
  bool report_sequel(std::uint32_t partition, const worker::ReportCell& cell, std::int64_t now) noexcept;
  void let_sequel_go(Partition& partition) noexcept;
  // Bitstreams: scheduler_bitstreams.cpp.
  void decode(std::uint32_t stream, const shm::Taken& taken) noexcept;
  bool decoded(Partition& partition, std::uint32_t count) noexcept;
  // Batches: scheduler_batches.cpp.
  bool report(std::uint32_t partition, const worker::ReportCell& cell, std::int64_t now) noexcept;
  bool began_beside(const Partition& partition, const worker::ReportCell& cell, std::int64_t now) noexcept;
  void count_end(const Batch& batch, const worker::ReportCell& cell, std::int64_t now) noexcept;
  void finish(std::uint32_t index, std::int64_t now, std::int64_t went_on_ns = 0) noexcept;
  void find_features(Batch& batch) noexcept;
  void keep_features(Batch& batch) noexcept;
  void give_rows(Batch& batch, std::uint32_t Task::*row, std::uint32_t edge) noexcept;
  void release(Batch& batch) noexcept;  // nobody works on it any more
  void reach(std::uint32_t index, std::int64_t now) noexcept;
  void send(std::uint32_t index, std::int64_t now) noexcept;
  static const PlanTables::StageEdges& edges_of(const Batch& batch) noexcept {
    return batch.by->stages[batch.by->first_stage[batch.route] + batch.stage];
  }
  void start_next(Partition& partition, std::int64_t now) noexcept;
  void give_up(
      std::uint32_t partition) noexcept;  // its worker is to be killed; worker_lost comes when it is proven dead
  std::uint32_t look_for_hung(std::int64_t now) noexcept;

  // What the core is not told, for who looks at the counters and for the record.
  void happened(shm::EventKind kind, std::int64_t now, std::uint64_t token, std::uint64_t a,
                std::uint64_t b = 0) noexcept;
  void drain_actions(std::int64_t now) noexcept;
  void dispatch(const core::Action& action, std::int64_t now) noexcept;
  void answer(const core::Action& action, std::int64_t now) noexcept;

  // Leaving clients' streams one after the other, closing streams and leaving clients that are done. How much there is
  // left to do at once.
  std::uint32_t close_ended(std::int64_t now) noexcept;
  [[nodiscard]] bool drained() noexcept;
  std::uint32_t close_streams_of_leaving(std::int64_t now) noexcept;
  void end_closed_streams(std::int64_t now) noexcept;
  void end_left_clients() noexcept;
  void flush(std::int64_t now) noexcept;
  void park() noexcept;
  bool anything() const noexcept;

  struct StreamTable {
    explicit StreamTable(std::uint32_t most) : all(most), of_core(most, core::kNone) { open.reserve(most); }
    Stream& operator[](std::size_t i) noexcept { return all[i]; }
    const Stream& operator[](std::size_t i) const noexcept { return all[i]; }
    std::vector<Stream> all;
    std::vector<std::uint32_t> of_core;  // index, by the core's number
    std::vector<std::uint32_t> open;     // indexes
  };
  struct ClientTable {
    explicit ClientTable(std::uint32_t most) : all(most) { live.reserve(most); }
    Client& operator[](std::size_t i) noexcept { return all[i]; }
    const Client& operator[](std::size_t i) const noexcept { return all[i]; }
    std::vector<Client> all;
    std::vector<std::uint32_t> live;  // indexes
    std::uint32_t next = 0;           // of live: who is looked at first
  };
  struct Quiet {  // what the control thread waits for
    std::uint32_t partition = core::kNone, application = core::kNone;
  };
  struct Plans {
    std::unique_ptr<LoopPlan> next;                 // waits for earlier ones to be over
    std::array<std::unique_ptr<LoopPlan>, 4> held;  // as the core holds them
    std::uint32_t earlier = 0;                      // that the core still has
    const PlanTables* in_force = nullptr;
    std::vector<Quiet> awaited;
  };
  struct Ending {
    std::uint32_t closing = 0;  // closing streams, leaving clients, and the drain
    bool draining = false, drained_told = false, stopped = false;
  };

  std::unique_ptr<record::RecordedCore> core_;
  LoopOptions options_;
  Metrics& metrics_;
  ControlQueues control_;
  shm::Fd poll_;  // epoll: the bells of the control thread, clients and workers
  StreamTable streams_;
  ClientTable clients_;
  std::vector<Batch> batches_;
  std::vector<Partition> partitions_;
  std::uint32_t used_partitions_ = 0;  // behind them no worker has been yet
  FeatureLedger features_;
  std::vector<std::uint64_t> row_bytes_;  // [edge]
  Plans plans_;
  TurnMeter meter_;
  std::int64_t next_look_ns_ = core::kNever;  // no partition hangs before
  Ending ending_;
};

}  // namespace leat::daemon
