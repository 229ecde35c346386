// The scheduler's state, shared by the core's rooms and by nobody else. Each member function is defined in the room named above it.
//
//   requests.cpp   streams, submission, answers, the ledger        merge.cpp      the DAG: fan-out, branches, merge
//   lanes.cpp      queues of tasks                                 order.cpp      which waiting task is next
//   drop_policy.cpp  when a waiting task is given up               batching.cpp   how large a batch is, and when it may start
//   placement.cpp  which lane, partition and path                  dispatch.cpp   batches: formed, started, ended, lost
//   reservation.cpp, booking.cpp  itineraries over timelines, instead of dispatch.cpp's choice; reactive.cpp  one stage at a time
//   downstream.cpp what lies after a module (L_sub), batch caps    forecast.cpp   the same from the present state
//   ramp.cpp       batch caps by the age of the backlog             fit.cpp        late binding on unequal partitions
//   freshness.cpp  supersede, expectations, weakly hard windows, budgets, margins
//   periodic.cpp   what look_ahead.h decides for partitions that periodic streams share
//
// Rules: a lane is a queue of tasks of one module. With late binding a module has one lane, served by all its partitions; with
// early binding one lane per (module, partition). A server is one (partition, route) that takes batches from one lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/deadline_queue.h"
#include "engine/core/pool.h"
#include "engine/core/reservation.h"
#include "engine/core/scheduler.h"
#include "engine/core/window.h"

namespace leat::core {

using LaneId = std::uint32_t;
using ServerId = std::uint32_t;

inline constexpr std::uint32_t kPriorities = 4;
inline constexpr std::uint8_t kMaxRetries = 3;

struct TaskList {  // singly linked by Task::next_in_batch, in order
  TaskId first = kNone, last = kNone;
  std::uint32_t tasks = 0, items = 0;
};

struct Stream {
  StreamConfig config;
  bool open = false, closing = false;
  std::uint32_t live = 0;                       // requests waiting or running
  std::uint32_t first = kNone, last = kNone;    // its requests, by arrival
  TimeNs newest_capture_ns = INT64_MIN;
  TimeNs next_expected_ns = kNever;             // look-ahead: when its next request should come
  TimeNs transit_ns = 0;                        // look-ahead: least time from capture to arrival seen lately
  TimeNs covered_ns = 0;                        // look-ahead: end of the last window in which a fresh result was delivered
  std::uint64_t misses = 0;                     // weakly hard: the last 64 requests, bit set: missed
};

struct Request {
  StreamId stream = kNone;
  std::uint64_t token = 0, branch_draw = 0;
  TimeNs capture_ns = 0, deadline_ns = 0, give_up_ns = 0;
  std::uint32_t items = 1, key = 0;
  std::uint32_t tasks = kNone;                  // list of its live tasks
  std::uint32_t placed = 0;                     // of them in a batch that was sent
  std::uint32_t previous = kNone, next = kNone; // of its stream
  std::uint16_t modules_left = 0;
  bool started = false;                         // some task was sent
  Outcome doom = Outcome::pending;              // decided, answered once nothing of it runs any more
  Reason doom_reason = Reason::none;
  ModuleId doom_where = kNone;
};

struct Progress {                               // of one request at one module of its application
  std::uint16_t before_left = 0;                // predecessors not complete
  std::uint16_t tasks_left = 0;
  std::uint32_t made = 0;                       // sub-requests its tasks made
  std::uint32_t offered = 0;                    // sub-requests its predecessors made
  bool fed = false;                             // some predecessor ran (was not skipped)
};

struct Server {
  PartitionId partition = 0;
  RouteId route = 0;
  LaneId lane = 0;
  std::uint32_t cap = 1;                        // items per batch
  std::int64_t ratio = 0;                       // Harpagon's throughput-cost ratio, scaled
  const TimeNs* run_ns = nullptr;               // [b]: all stages and transfers, b = 0..route.batch
  const TimeNs* safe_ns = nullptr;              // the same from p99
  TimeNs spacing_ns = 0;                        // tc: from a start on this route to the first of a server that stood idle; 0: none
  bool padded = false;                          // tc: its window brings no full batch; the plan counts on dummies
};

struct Lane {
  ModuleId module = 0;
  ServerId first_server = 0;
  std::uint32_t servers = 0;
  bool mixed = false;                           // its servers differ in speed, and fit.cpp says who takes what
  std::uint32_t idle_words = 0;                 // offset of its bit set of available servers
  std::array<DeadlineQueue, kPriorities> queue;
  std::array<ArrivalList, kPriorities> arrivals;
  std::uint32_t classes = 0;                    // bit: that priority has tasks
  std::uint32_t tasks = 0, items = 0;           // queued, not counting `forming`
  TaskList forming;                             // taken, not sent yet
  TimeNs queued_run_ns = 0;                     // ELSA eq. 1: expected run time of what is queued here
  TimeNs wake_ns = kNever;                      // batching waits until then
  TimeNs next_start_ns = 0;                     // tc, rr: when its server can start the batch after those assigned
  std::uint32_t block_left = 0;                 // tc, rr: items still to come in this turn
  TimeNs block_from_ns = 0;                     // tc: when its first came
  bool dirty = false;
};

struct Partition {
  bool up = false;
  bool dirty = false;
  std::uint32_t held = 0;                       // batches sent to it whose end is not proven
  TimeNs free_ns = 0;                           // expected end of them all
  TimeNs promised_ns = 0;                       // look-ahead: when it is free at the latest, going by the safe bound
  TimeNs deferred_until_ns = 0;                 // look-ahead keeps it idle until then
  std::vector<ServerId> servers;
};

enum class BatchState : std::uint8_t { free, live, condemned };  // condemned: lost, but another partition still works on it

struct Batch {
  BatchState state = BatchState::free;
  RouteId route = 0;
  LaneId lane = 0;
  std::uint32_t stage = 0;
  bool forecast = false;                        // counted in its module's running work (forecast.cpp)
  TaskList list;
  std::uint8_t priority = 0;
  BookingId booking = kNone;                    // reservation: what it was booked as
  TimeNs sent_ns = 0, started_ns = 0, start_ns = 0, expected_end_ns = 0, stage_end_ns = 0;
  std::array<PartitionId, kMaxStages> path{};
};

struct ModuleState {
  // A profiled time as it really is here. Only policies that forecast learn it.
  [[nodiscard]] TimeNs paced(TimeNs ns) const noexcept { return pace_permille == 1000 ? ns : ns * pace_permille / 1000; }
  std::uint32_t application = 0;
  std::uint32_t local = 0;                      // index within its application
  LaneId first_lane = 0;
  std::uint32_t lanes = 0;
  std::uint32_t branch_permille = 1000;         // < 1000: taken by chance
  std::uint32_t max_items = 1;                  // the largest batch of its routes
  std::uint32_t cap = UINT32_MAX;               // of batches at present (ramp.cpp); each server's own holds besides
  TimeNs planned_ns = 0;                        // d at the planned batch, mean over servers
  TimeNs least_ns = 0;                          // d(1) of its fastest server
  TimeNs share_ns = 0;                          // Clipper++: its part of the SLO
  std::int64_t pace_ppm = 1'000'000;            // what its batches take of their profiled time, smoothed
  std::int64_t pace_permille = 1000;            // the same; 1000 while it is within 2 % (learn())
  TimeNs after_ns = 0;                          // L_sub as the drop policy sees it: maximum over paths
  TimeNs after_least_ns = 0;                    // sum of least_ns after it, maximum over paths
  std::uint32_t running = 0;                    // batches
  std::int64_t running_items = 0, queued_items = 0;
  TimeNs running_end_sum = 0;                   // expected ends of those batches
  std::int64_t server_count = 1;
  std::int64_t ns_per_item = 0;                 // 1 / its throughput at the planned batches
  std::int64_t capacity_mhz = 0;                // its throughput, items per 1000 s
  bool high_first = false;                      // adaptive, instant: the present mode
  std::uint32_t turn = 0;                       // rr: the lane whose turn it is
  TimeNs probe_ns = INT64_MIN / 2;              // proactive: when a hopeless task was last let through to learn
  Window queue_delay;
  Window arrivals;
};

// Batch caps of an application's modules from a certain age of its backlog on (ramp.cpp).
struct CapLevel {
  std::array<std::uint32_t, kMaxModulesPerApplication> cap{};
  std::array<std::int64_t, kMaxModulesPerApplication> ns_per_item{};
  double rate = 0;                              // X: requests per ns that they carry
  TimeNs latency_ns = 0;                        // L: of a full batch on the longest path
  TimeNs from_ns = 0;
};

struct ApplicationState {
  std::vector<CapLevel> levels;                 // empty: caps do not change
  std::size_t level = 0;                        // the present one
  std::int64_t queued_items = 0;                // at all its modules
  bool burst = false;                           // what has waited since then came at once (ramp.cpp)
  TimeNs backlog_ns = 0;                        // since when something has waited, but for gaps shorter than gap_ns
  TimeNs emptied_ns = INT64_MIN / 2;            // when the last task that waited went
  TimeNs gap_ns = 0;                            // the slowest module's least time
  std::uint32_t admit_permille = 1000;          // overload control
  std::uint32_t admit_credit = 0;
  TimeNs controlled_ns = 0;
};

struct Scheduler::State {
  State(const Topology& topology, const Policy& policy, const Limits& limits);

  // requests.cpp
  StreamId open_stream(const StreamConfig& config) noexcept;
  void close_stream(StreamId id, Reason reason) noexcept;
  RequestHandle submit(const Submission& s) noexcept;
  void drop_request(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept;
  void settle(std::uint32_t request) noexcept;  // answers a doomed or complete request nothing of which runs
  void answer(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept;
  void answer_now(const Submission& s, Outcome outcome, Reason reason) noexcept;  // never became a request
  void count(StreamId stream, Outcome outcome, Reason reason) noexcept;

  // merge.cpp
  Progress& progress(std::uint32_t request, ModuleId module) noexcept;
  void begin(std::uint32_t request) noexcept;
  void activate(std::uint32_t request, ModuleId module) noexcept;
  void complete_module(std::uint32_t request, ModuleId module, bool ran) noexcept;
  bool branch_taken(const Request& r, ModuleId module) const noexcept;

  // lanes.cpp
  void enqueue(TaskId task) noexcept;
  void dequeue(TaskId task) noexcept;           // out of its lane's queue
  void take(Lane& lane, TaskId task) noexcept;  // out of the queue, into `forming`
  void release(TaskId task) noexcept;           // from whatever it is in; frees it
  void mark(LaneId lane) noexcept;              // has work to look at
  void mark_partition(PartitionId partition) noexcept;
  void set_idle(PartitionId partition) noexcept;  // recomputes its bit in every lane it serves
  [[nodiscard]] ServerId idle_server(const Lane& lane) const noexcept;
  void want_timer(TimeNs at) noexcept { timer = at < timer ? at : timer; }
  [[nodiscard]] TimeNs earliest_timer() const noexcept;

  // order.cpp
  [[nodiscard]] TaskId next_task(const Lane& lane, bool high_first) const noexcept;
  [[nodiscard]] bool choose_order(Lane& lane, const Server& server) noexcept;
  void update_load(ModuleId module) noexcept;

  // drop_policy.cpp
  [[nodiscard]] Reason verdict(const Task& task, const Lane& lane, TimeNs start, TimeNs d) const noexcept;
  [[nodiscard]] bool probe(const Task& task, TimeNs start, TimeNs d) noexcept;
  void slide_window(Lane& lane, const Server& server, TimeNs start) noexcept;
  void purge_low_end(Lane& lane, TimeNs start, TimeNs d) noexcept;
  void expire(Lane& lane) noexcept;
  [[nodiscard]] bool admitted(std::uint32_t application) noexcept;

  // batching.cpp
  [[nodiscard]] std::uint32_t batch_target(Lane& lane, const Server& server, TimeNs start) noexcept;  // items; 0: not now
  [[nodiscard]] std::uint32_t shrink(const Lane& lane, const Server& server, TimeNs start, std::uint32_t target) const noexcept;
  void form(Lane& lane, const Server& server, TimeNs start, std::uint32_t target) noexcept;
  [[nodiscard]] TimeNs last_safe_start(const Lane& lane, const Server& server, std::uint32_t items) const noexcept;

  // ramp.cpp
  void plan_ramp(std::uint32_t application);
  void ramp(std::uint32_t application) noexcept;
  bool came_at_once(std::uint32_t application) noexcept;
  [[nodiscard]] std::uint32_t cap_of(const Server& server) const noexcept { return std::min(server.cap, modules[lanes[server.lane].module].cap); }

  // fit.cpp
  void form_fitting(Lane& lane, const Server& server, TimeNs start, std::uint32_t target) noexcept;
  void cap_by_time(ModuleId module, TimeNs budget) noexcept;

  // turns.cpp
  void plan_turns() noexcept;
  [[nodiscard]] LaneId next_in_turn(ModuleId module, const Task& task) noexcept;
  [[nodiscard]] LaneId next_by_window(ModuleId module, const Task& task) noexcept;

  // placement.cpp
  [[nodiscard]] LaneId place(ModuleId module, const Task& task) noexcept;
  [[nodiscard]] ServerId preferred(const Lane& lane) noexcept;
  void choose_path(Batch& batch, PartitionId first) noexcept;
  [[nodiscard]] TimeNs transfer_ns(const Batch& batch, std::size_t stage) const noexcept;
  [[nodiscard]] TimeNs link_ns(std::int64_t bytes, PartitionId from, PartitionId to) const noexcept;

  // dispatch.cpp
  void pump() noexcept;
  [[nodiscard]] bool serve(PartitionId partition) noexcept;
  void offer_others(const Lane& lane, ServerId refused) noexcept;
  [[nodiscard]] bool try_server(ServerId server) noexcept;
  void collect_ahead(Lane& lane) noexcept;
  void launch(LaneId lane, const Server& server, TimeNs start) noexcept;
  void leave(const Sample& sample) noexcept;    // for the estimator
  void stage_started(BatchHandle handle, std::uint32_t stage) noexcept;
  bool stage_finished(BatchHandle handle, std::uint32_t stage, std::span<const TaskResult> results) noexcept;
  void finish_tasks(std::uint32_t batch, std::span<const TaskResult> results) noexcept;
  void partition_lost(PartitionId partition) noexcept;
  void partition_ready(PartitionId partition) noexcept;
  void give_back(std::uint32_t batch) noexcept;  // a lost batch's tasks: retried while slack allows, else failed
  void free_batch(std::uint32_t batch) noexcept;

  // reservation.cpp, booking.cpp
  enum class Booked : std::uint8_t { done, late, wait };
  void plan_growth(ModuleId module) noexcept;
  void check_bookings() const;
  // Our reservations: neither PPipe's as printed nor its ablation.
  [[nodiscard]] bool books_ahead() const noexcept { return policy.batch != Batching::search_down && policy.batch != Batching::reactive; }
  [[nodiscard]] TimeNs room_to_grow(RouteId route) const noexcept;
  [[nodiscard]] TimeNs room_after(ModuleId module) const noexcept;
  void reserve_lane(LaneId lane) noexcept;
  void send_due(PartitionId partition) noexcept;
  void unbook(TaskId task, std::size_t from) noexcept;
  void unbook_partition(PartitionId partition) noexcept;
  void close_booking(BookingId booking) noexcept;
  void pass_on(std::uint32_t batch) noexcept;
  [[nodiscard]] TimeNs earliest_booking() const noexcept;
  [[nodiscard]] Booked book_alone(Lane& lane, TaskId task, TimeNs bound) noexcept;
  [[nodiscard]] Booked book_as_printed(Lane& lane, TaskId head, TimeNs bound) noexcept;
  [[nodiscard]] bool grow_some(Lane& lane, TaskId task, TimeNs bound) noexcept;
  [[nodiscard]] bool grow(LegPlan leg, TaskId task, TimeNs bound) noexcept;
  void put_back(const KeptLegs& kept, RouteId route, std::size_t from) noexcept;
  [[nodiscard]] bool book_rest(std::span<const KeptLegs> group, RouteId route, std::size_t from) noexcept;
  [[nodiscard]] bool book_through(TaskId task, const PathPlan& plan, TimeNs bound, TimeNs until) noexcept;
  [[nodiscard]] bool join_inner(TaskId task, RouteId route, std::size_t k, TimeNs bound) noexcept;
  void book_path(TaskId task, const PathPlan& plan, TimeNs bound) noexcept;
  void book_leg(TaskId task, RouteId route, std::size_t k, const LegPlan& plan, TimeNs bound) noexcept;
  [[nodiscard]] BookingId open_booking(RouteId route, std::size_t stage, const LegPlan& leg) noexcept;
  void move_end(Booking& booking, TimeNs end) noexcept;
  void use_links(const Leg& leg, PartitionId from, PartitionId to, bool reserve) noexcept;
  void drop_late(BookingId booking) noexcept;
  void send(BookingId booking) noexcept;
  void postpone(PartitionId partition, TimeNs at) noexcept;
  [[nodiscard]] TimeNs duration(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
    return modules[route.module].paced(route.stages[k].latency.p50_ns[items - 1]);
  }
  [[nodiscard]] TimeNs stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept;
  [[nodiscard]] bool usable(PartitionId partition) const noexcept;
  [[nodiscard]] bool booked_on(const Booking& booking) const noexcept;
  void travel(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, LegPlan& leg) const noexcept;
  [[nodiscard]] bool extends(const Booking& booking, TimeNs end) const noexcept;
  [[nodiscard]] LegPlan probe_entry(const RouteSpec& route, std::uint32_t items, bool by_uplink) const noexcept;
  [[nodiscard]] LegPlan probe_leg(RouteId route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, TimeNs bound,
                                  bool join) const noexcept;
  [[nodiscard]] PathPlan probe_path(RouteId route, std::uint32_t items, TimeNs bound, bool by_uplink, bool join) const noexcept;

  // reactive.cpp
  [[nodiscard]] TimeNs stage_bound(RouteId route, std::size_t k, TimeNs from, TimeNs until) const noexcept;
  [[nodiscard]] LegPlan probe_pool(RouteId route, std::size_t k, std::uint32_t items, TimeNs ready, TimeNs bound) const noexcept;
  [[nodiscard]] Booked book_entry(Lane& lane, TaskId task, TimeNs until) noexcept;
  [[nodiscard]] bool book_next(TaskId task, RouteId route, std::size_t k) noexcept;

  // downstream.cpp
  void plan_caps();
  void build_tables();
  void update_downstream(std::uint32_t application) noexcept;
  void split_slo(const ApplicationSpec& app, const std::array<TimeNs, kMaxModulesPerApplication>& weights) noexcept;

  // forecast.cpp
  [[nodiscard]] TimeNs forecast(ModuleId from, std::uint32_t n, TimeNs d) const noexcept;  // L_sub

  // freshness.cpp
  [[nodiscard]] bool make_room(StreamId stream, const Submission& s, TimeNs capture) noexcept;
  void expect_next(StreamId id, TimeNs capture) noexcept;
  void delivered(Stream& stream, TimeNs capture) noexcept;
  void record_miss(Stream& stream, bool missed) noexcept;
  [[nodiscard]] std::uint8_t priority_of(const Stream& stream) const noexcept;
  void learn(const Batch& batch, TimeNs ran) noexcept;  // the margin of promises, and what background work has had
  void spend_background(TimeNs run) noexcept;
  [[nodiscard]] std::uint32_t rank_of(std::uint8_t priority) noexcept;  // among the lanes of a partition; larger first

  // periodic.cpp
  enum class Turn : std::uint8_t { not_shared, started, idle };
  struct Known;
  [[nodiscard]] Turn serve_periodic(PartitionId partition) noexcept;
  [[nodiscard]] bool add_stream(Known& known, StreamId id) noexcept;
  void add_machines(Known& known, bool busy) noexcept;
  [[nodiscard]] bool add_others(Known& known) noexcept;
  void start_chosen(ServerId server, TaskId lead, std::uint32_t requests) noexcept;

  // scheduler.cpp
  void touch(TimeNs now) noexcept;
  void advance() noexcept;
  void push(const Action& action) noexcept;
  [[nodiscard]] bool next_action(Action& out) noexcept;
  void check() const;

  // ---- data ----
  Topology topology;
  Policy policy;
  Limits limits;
  Counters counters;
  TimeNs now = 0;
  TimeNs timer = kNever;                        // no planned moment is before this
  std::uint64_t serial = 0;
  std::uint64_t random = 1;
  std::uint32_t margin_permille = 1100;
  TimeNs background_credit_ns = 0;              // run time that background work is owed; below 0: it has had more
  TimeNs background_ns = 0;                     // when that was

  std::vector<ApplicationState> applications;
  std::vector<ModuleState> modules;
  std::vector<Lane> lanes;
  std::vector<Server> servers;
  std::vector<Partition> partitions;
  std::vector<std::uint64_t> idle_bits;
  std::vector<TimeNs> table;                    // run_ns and safe_ns of all routes
  std::vector<std::uint32_t> route_run, route_safe;  // offsets into `table`
  Estimates estimates;
  std::unique_ptr<Reservations> reservations;   // place reservation only

  std::vector<Stream> streams;
  std::vector<StreamId> periodic;               // open periodic streams that have submitted something
  Pool<Request> requests;
  Pool<Task> tasks;
  Pool<Batch> batches;
  std::vector<Progress> progress_of;
  std::uint32_t progress_stride = 1;

  std::vector<LaneId> dirty_lanes;
  std::vector<PartitionId> dirty_partitions;
  std::vector<Sample> samples;                  // a ring; empty where the policy needs no estimates
  std::size_t sample_first = 0, sample_count = 0;

  std::vector<Action> actions;                  // a ring; spans are filled when taken
  std::size_t action_first = 0, action_count = 0;
  std::vector<TaskRef> scratch_tasks;
};

// A broken invariant of our own: always on, ends the process.
[[noreturn]] void broken(const char* what) noexcept;
inline void insist(bool holds, const char* what) noexcept {
  if (!holds) [[unlikely]] broken(what);
}

}  // namespace leat::core
