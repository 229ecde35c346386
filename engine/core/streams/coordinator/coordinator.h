// Coordinated streams (ARISE, thesis chapter 3): the server decides when each stream sends a frame, so that every
// stream keeps its accuracy SLA with as few detections as that takes, and they come when they fit into a batch.
//
// Every tick (200 ms): estimate -> settings -> simulate -> adjust -> verify -> apply. What is planned to start before
// now + overlap is not touched, so that no client is told two things. Where a partition's plan would break a stream's
// SLA, the stream that costs most for its weight there is evicted; where it keeps everybody's with room to spare,
// streams that wait are admitted, by weight and then by turn. A tick makes only so many plans; what is left to do the
// next one does.
//
// The drop is relative to a reference: the stream alone on a partition, one frame after the other. What a client says
// about its drops only moves its own setting, and never beyond `max_share` of a partition; from there on its SLA is its
// own affair.
//
// Users share partitions by weight, over all streams of each (users.h). Where there are several, whoever has more than
// his share makes room for whoever has less, and goes first where a plan does not hold. What one reports is a prior for
// his own streams alone. With one user none of this happens.
//
// One coordinator plans all modules that share partitions: a batch is of one module, a partition's time everybody's.
//
// Tasks of one client (AccuMO) that name the same group and the same module are planned as one stream, their lead,
// whose slots they take in turns as group.h decides: never two at once, since a stream is planned on one partition. Its
// slope is what the best turns for slopes that do not change would leave, (sum of sqrt(weight slope))^2 / sum of
// weights. A group of several modules has a lead for each. The group's SLA, the weighted mean of its tasks', holds for
// the weighted mean of their drops: each lead has a share of it (shares.h), and all of them are admitted and evicted
// together.
//
// Sans-I/O: events and a time in, a plan out. Nothing allocates after construction. One thread. Unknown numbers are
// ignored.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/streams/asking.h"
#include "engine/core/streams/estimator.h"
#include "engine/core/streams/group.h"
#include "engine/core/streams/margin.h"
#include "engine/core/streams/meter.h"
#include "engine/core/streams/packing.h"
#include "engine/core/streams/settings.h"
#include "engine/core/streams/sla_shares.h"
#include "engine/core/streams/strides.h"
#include "engine/core/streams/users.h"
#include "engine/core/types.h"

namespace leat::core::streams {

struct CoordinatorSettings {
  TimeNs tick_ns = 200'000'000;
  TimeNs overlap_ns = 60'000'000;
  TimeNs horizon_ns = 1'000'000'000;
  // Of a batch's run time, left between batches for frames that come late and batches that take longer: as much as all
  // but one of twenty have needed lately, between these two. The thesis's: always the most.
  double grace = 0.1, min_grace = 0.02;
  double reach = 0.5;     // of an interval that a frame may come early (packing.h), while nobody waits to be admitted;
                          // without bound when somebody does, and in the thesis always
  bool even = true;       // packing.h, while somebody waits; the thesis's: false
  bool any_phase = true;  // settings.h; the thesis's: false
  // All streams of a partition are planned for batches of the size that makes their load the least, so that no batch
  // is kept small by one member; the thesis's: false, each for its own.
  bool common_batch = true;
  double bend = 0.006, hidden = 3;  // of the curve of drops (strides.h); the thesis's: 0, 0
  EstimatorSettings estimator;
  MarginSettings margin;
  AskingSettings asking;
  TimeNs probe_ns = 4'000'000'000;   // from one pair of successive frames to the next; 0: none
  double admit_room = 0.05;          // of a partition, kept free when a stream is admitted
  TimeNs settle_ns = 1'000'000'000;  // after an eviction a partition admits nobody
  TimeNs silent_ns = 2'000'000'000;  // a stream that has sent nothing for so long is planned no more
  std::uint32_t streams = 256;       // at most, waiting ones included
};

struct CoordinatedStream {
  double sla_drop = 0.06;  // mean over a second of frames, above the reference
  Pace pace;
  std::uint32_t module = 0;  // the coordinator's number of it
  double weight = 1;
  double max_share = 1;    // of one partition; and of the coordinator's places, what its user may have
  double prior_slope = 0;  // 0: what others of its user show, or the estimator's
  std::uint32_t user = 0;  // whose it is: users divide partitions by their weights
  double user_weight = 1;  // the same in all streams of a user
  // Of a task in a group of at most kGroupTasks; 0: a stream by itself.
  std::uint64_t group = 0;
  double task_weight = 1;
  double local = 1;  // drop of its local algorithm; none: 1
};

enum class Standing : std::uint8_t { none, waiting, admitted, silent };

// When a client that says what it expects to have lost may send a frame without being told a time: as soon as that is
// `above`, and `earliest_ns` after the frame before; at the latest `latest_ns` after it. One more every `refill_ns`,
// `bucket` at once. Not at all where latest_ns is 0.
struct Asks {
  double above = 0;
  TimeNs earliest_ns = 0, latest_ns = 0, refill_ns = 0;
  double bucket = 0;
};

// What became of a stream in the plan.
struct StreamView {
  Standing standing = Standing::none;
  Setting setting;
  PartitionId partition = kNone;
  double slope = 0, jitter = 0, margin = 0;
  double planned_drop = 0;   // of the plan, by the estimate
  double measured_drop = 0;  // of the last whole second, by what the client reported
  std::uint32_t evictions = 0;
  TimeNs next_ns = kNever;  // when its next frame is wanted
  Asks asks;
  double worth = 0;        // of what it expects to have lost, beside the clock (asking.h)
  double local_above = 0;  // what it expects to have lost from which on its local algorithm is better; 0: unknown
};

class Coordinator {
 public:
  // By module, each for the same partitions and served by one at least, as long as ran() says nothing else.
  Coordinator(std::vector<BatchTimes> batch_ns, const CoordinatorSettings& settings);

  // ---- events ----
  [[nodiscard]] std::uint32_t open(TimeNs now, const CoordinatedStream& stream) noexcept;  // kNone: no room
  void close(TimeNs now, std::uint32_t stream) noexcept;
  // When its camera took its last frame, and how often it does. Periods outside 4 ms..2 s are ignored.
  void frame_clock(std::uint32_t stream, TimeNs last_capture_ns, TimeNs period_ns) noexcept;
  // The client has an answer for the frame taken at capture_ns, since now.
  void answered(TimeNs now, std::uint32_t stream, TimeNs capture_ns) noexcept;
  // The distance between what tracking made of the frame before last answered and the answer of this one, `stride`
  // frames later. `far`: of a frame answered longer ago (leat/look_back.hpp), which says what a stride costs but not
  // what was shown. False: out of range, ignored.
  // `expected`: what the client had expected to see lost; below 0: it says nothing of that.
  bool observe(TimeNs now, std::uint32_t stream, std::uint32_t stride, double drop, bool far = false,
               double expected = -1) noexcept;
  // It has asked for a detection of its newest frame. False: it was not to.
  bool asked(TimeNs now, std::uint32_t stream) noexcept;
  // It has sent something: one that was silent waits to be admitted again.
  void spoke(TimeNs now, std::uint32_t stream) noexcept;
  // A batch of `batch` of a module has taken so long on a partition, and begun so much later than planned. Plans go by
  // what batches have taken lately: how many times their run time of the constructor, in the median, the same number
  // for all sizes.
  void ran(std::uint32_t module, PartitionId partition, std::uint32_t batch, TimeNs run_ns, TimeNs late_ns) noexcept;
  [[nodiscard]] double grace(PartitionId partition) const noexcept { return parts_[partition].grace; }
  // All are up at first. Nothing is planned on one that is not.
  void partition(PartitionId partition, bool up) noexcept { parts_[partition].up = up; }
  [[nodiscard]] static bool period_ok(TimeNs period_ns) noexcept;
  // Plans anew. Call when next_tick() has come.
  void tick(TimeNs now) noexcept;
  [[nodiscard]] TimeNs next_tick() const noexcept { return next_tick_ns_; }

  // ---- the plan ----
  // In order of time within each partition, what was kept of the plan before first. Until the next tick, which leaves
  // out what has ended. A member that is there twice sends two successive frames (a probe).
  [[nodiscard]] std::span<const PlannedBatch> batches() const noexcept { return planned_.batches; }
  [[nodiscard]] std::span<const std::uint32_t> members(const PlannedBatch& b) const noexcept {
    return std::span(planned_.members).subspan(b.first, b.count);
  }
  [[nodiscard]] bool admitted(std::uint32_t stream) const noexcept {
    return stream < streams_.size() && planned(stream).standing == Standing::admitted;
  }
  [[nodiscard]] StreamView view(std::uint32_t stream) const noexcept;
  [[nodiscard]] std::size_t max_batches() const noexcept { return planned_.batches.capacity(); }
  [[nodiscard]] bool any() const noexcept { return roster_.open > 0; }  // streams
  [[nodiscard]] std::uint32_t admitted_streams() const noexcept {
    return static_cast<std::uint32_t>(roster_.in.size());
  }
  [[nodiscard]] const CoordinatorSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] const StrideCurve& curve() const noexcept { return curve_; }
  void visit_state(Snapshot& state) {
    state(times_, users_, roster_, parts_, planned_, kept_, groups_.turns, rivals_.compete, rivals_.equal);
    state.some(streams_, [&](std::uint32_t s) { return streams_[s].standing != Standing::none; });
    state(next_tick_ns_);
  }

 private:
  struct Stream {
    Standing standing = Standing::none;
    CoordinatedStream spec;
    std::uint32_t user = 0;  // the table's number
    DropEstimator estimator;
    Margin margin;
    TimeNs phase_ns = 0;   // of its camera
    double sla_drop = 0;   // that it is planned for: its own, or a lead's share
    double reference = 0;  // mean x of the reference
    double max = 0;        // mean x that its SLA and margin leave
    Setting setting;
    PartitionId partition = kNone;
    double cost = 0;            // to the others for its weight, with all of its group
    double wants = 0;           // load, if its user had more than enough
    double usual = 0;           // load since it was admitted, in a slow mean; 0: it was not planned yet
    double mark = 0;            // its user's load for his weight: while it waits with it, else before it would go
    double trim = 0, over = 0;  // x that its setting leaves alone because plans came out later than that; by how much
    bool broken = false;        // its SLA, by the last plan that was no trial of an admission
    bool spendthrift = false;   // wants more than its share: what it gets is not held against the plan
    // Its last frame that is not to be planned any more: when it is sent, when its answer serves.
    TimeNs sent_ns = INT64_MIN, serves_ns = INT64_MIN;
    TimeNs heard_ns = 0, since_ns = 0, probed_ns = 0, refused_ns = INT64_MIN / 2, wait_ns = 1'000'000'000;
    DropMeter meter;
    Asking asking;
    TimeNs bucket_ns = INT64_MIN / 2;  // until when what it asked for is paid
    double measured_drop = 0;
    double planned_drop = 0;
    std::uint32_t evictions = 0;
    std::uint64_t turn = 0;  // among those that wait
    // A task is planned as the group that is its lead; its own standing only says that it is open.
    std::uint32_t lead = kNone;
    // A lead, a stream of nobody's own. The leads of a group are a ring.
    std::uint32_t sibling = kNone;
    std::array<std::uint32_t, kGroupTasks> task{};
    std::uint32_t tasks = 0;
    double slope = 0, left = 0;            // of all of them; the share of the SLA that is left alone
    double task_weights = 0, locally = 1;  // sum; what their local algorithms lose
    // While slots are handed out: of a task its last one; of a lead how many there are, the first and the last.
    TimeNs asked_ns = INT64_MIN;
    std::uint32_t slots = 0;
    TimeNs first_slot_ns = 0, last_slot_ns = 0;
  };
  struct Partition {
    bool up = true;
    double grace = 0;
    double load = 0;                                         // of its streams
    double level = std::numeric_limits<double>::infinity();  // of users' loads for their weights (users.h)
    std::uint32_t streams = 0;                               // that are planned on it
    bool holds = true;                                       // every SLA, in the last plan of it
    TimeNs evicted_ns = INT64_MIN / 2;
    std::size_t admitting = 1;  // that wait, at once
    // In this tick: nobody more is admitted, somebody is being tried, it is to be planned again.
    bool full = false, tried = false, changed = false;
  };
  // An admission is tried where users compete. Of one user's streams: what others' lose holds it up only where they are
  // within their share and did not lose it before, or, `alone`, not at all.
  struct Trial {
    bool on = false;
    std::uint32_t user = kNone;  // kNone: of several
    bool alone = false;
  };
  struct Usual {  // how many times what its profile says a batch takes: the median, by steps that shrink where it is
                  // near
    double times = 1, step = 0.04;
    bool up = false;
  };
  struct Tally {  // of a stream while a plan is verified
    double x = 0;
    std::uint32_t frames = 0;
    std::int64_t source = 0, shown = 0;  // frames of its camera
  };
  // Plans the streams of all partitions, or those of one behind what is there. False: an SLA is broken, by more than
  // `slack`.
  [[nodiscard]] bool plan(TimeNs now, double slack, PartitionId only = kNone) noexcept;
  [[nodiscard]] bool try_out(TimeNs now, double slack, PartitionId partition) noexcept;
  // There is time in this tick to try plans of so many streams more.
  [[nodiscard]] bool may_try(std::size_t streams) const noexcept;
  void settle(TimeNs now) noexcept;
  void keep_near(TimeNs now) noexcept;
  void budget(std::uint32_t stream) noexcept;
  void choose(TimeNs now, std::uint32_t stream) noexcept;
  void choose_batch(std::uint32_t module, PartitionId partition) noexcept;
  // Run times on its partition; until it has one, on the first that serves its module.
  [[nodiscard]] const std::vector<TimeNs>& runs(const Stream& s) const noexcept;
  [[nodiscard]] bool serves(PartitionId partition, const Stream& s) const noexcept {
    return !times_.batch_ns[s.spec.module][partition].empty();
  }
  // Of a stream in batches of at most `batch`.
  [[nodiscard]] Setting setting_of(const Stream& s, PartitionId partition, std::uint32_t batch) const noexcept;
  // Of the SLA: how far into its margin a plan may go that holds streams, so that who was admitted just so may stay.
  static constexpr double kAdmit = 0, kHold = 0.08;
  // Streams, over all trials of a tick. Where users compete there is more to do beside: so many with those that are
  // planned, but never fewer than the least; the last of them are kept for claims.
  static constexpr std::size_t kTriedAtOnce = 1200, kTriedBeside = 900, kMinTried = 400, kKept = 200;
  void add_up() noexcept;  // the partitions' loads and numbers of streams
  void move() noexcept;
  void pack(TimeNs now, PartitionId partition) noexcept;
  [[nodiscard]] bool verify(TimeNs now, double slack, PartitionId only, std::size_t from) noexcept;
  void mend(TimeNs now, PartitionId partition) noexcept;
  void evict(TimeNs now, PartitionId partition) noexcept;
  void by_cost() noexcept;
  void send_away(std::size_t first) noexcept;
  void admit(TimeNs now) noexcept;
  // ---- users ----
  void weigh() noexcept;
  void add_up_users() noexcept;
  [[nodiscard]] double level(PartitionId partition) noexcept;
  void line_up() noexcept;
  void mark_down() noexcept;
  [[nodiscard]] std::size_t blame(PartitionId partition, bool rich) noexcept;
  [[nodiscard]] bool settling(TimeNs now, const Stream& s) const noexcept;
  void claim(TimeNs now) noexcept;
  [[nodiscard]] bool claim_on(TimeNs now, std::size_t at, PartitionId partition) noexcept;
  [[nodiscard]] double claimants(TimeNs now, std::size_t at, PartitionId partition, std::size_t max) noexcept;
  [[nodiscard]] bool make_room(PartitionId partition, std::uint32_t user, double wants) noexcept;
  [[nodiscard]] bool try_claim(TimeNs now, PartitionId partition) noexcept;
  [[nodiscard]] PartitionId least_loaded(const Stream& s) const noexcept;
  void leave(std::uint32_t stream, Standing to) noexcept;
  [[nodiscard]] static TimeNs interval_ns(const Stream& s) noexcept {
    return static_cast<TimeNs>(s.setting.interval * static_cast<double>(s.spec.pace.period_ns));
  }
  [[nodiscard]] static bool asks(const Stream& s) noexcept { return s.asking.asks() && s.lead == kNone; }
  [[nodiscard]] Asks asks_of(const Stream& s) const noexcept;
  [[nodiscard]] TimeNs latest_ns(const Stream& s) const noexcept;
  void charge(TimeNs now, Stream& s) noexcept;
  [[nodiscard]] const Stream& planned(std::uint32_t stream) const noexcept {
    return streams_[streams_[stream].lead == kNone ? stream : streams_[stream].lead];
  }
  [[nodiscard]] Stream& planned(std::uint32_t stream) noexcept {
    return streams_[streams_[stream].lead == kNone ? stream : streams_[stream].lead];
  }
  [[nodiscard]] static double slope_of(const Stream& s) noexcept { return s.tasks > 0 ? s.slope : s.estimator.slope(); }
  [[nodiscard]] std::uint32_t make(TimeNs now, const CoordinatedStream& spec) noexcept;
  [[nodiscard]] bool join(TimeNs now, std::uint32_t task) noexcept;
  void part(std::uint32_t task) noexcept;
  void sum_up(std::uint32_t lead) noexcept;
  void share_sla(std::uint32_t lead) noexcept;
  // The leads of a group follow each other in a list that is in order. `end`, or the end of the group that it parts.
  [[nodiscard]] std::size_t whole(std::span<const std::uint32_t> list, std::size_t end) const noexcept;
  // All leads of its group, itself last; of a stream by itself that one.
  template <class Do>
  void each_lead(std::uint32_t id, const Do& run) const noexcept {
    std::uint32_t at = id;
    do {
      at = streams_[at].sibling == kNone ? at : streams_[at].sibling;
      run(at);
    } while (at != id);
  }
  void hand_out() noexcept;
  [[nodiscard]] std::uint32_t next_task(const Stream& lead, TimeNs at, bool by_program) noexcept;
  [[nodiscard]] static std::uint32_t slots_apart(const Stream& lead) noexcept;
  [[nodiscard]] double margin_of(const Stream& s) const noexcept;
  [[nodiscard]] User& user_of(const Stream& s) noexcept { return users_[s.user]; }
  [[nodiscard]] const User& user_of(const Stream& s) const noexcept { return users_[s.user]; }
  [[nodiscard]] static bool same_group(const Stream& a, const Stream& b) noexcept {
    return a.tasks > 0 && b.tasks > 0 && a.user == b.user && a.spec.group == b.spec.group;
  }
  void release(Stream& s) noexcept;

  // Run times, and what goes by module and partition with them.
  struct Times {
    explicit Times(std::vector<BatchTimes> profile)
        : profile_ns(std::move(profile)),
          batch_ns(profile_ns),
          usual(profile_ns.size(), std::vector<Usual>(profile_ns.front().size())),
          common_batch(profile_ns.size(), std::vector(profile_ns.front().size(), 1u)) {}

    const std::vector<BatchTimes> profile_ns;
    std::vector<BatchTimes> batch_ns;  // what plans go by
    std::vector<std::vector<Usual>> usual;
    std::vector<PartitionId> first;                        // by module: that serves it
    std::vector<std::vector<std::uint32_t>> common_batch;  // what a partition's streams are planned for
    void visit_state(Snapshot& state) { state(batch_ns, usual, common_batch); }
  };
  struct Roster {
    std::vector<std::uint32_t> in, waiting;  // admitted, and not
    std::uint32_t open = 0;
    void visit_state(Snapshot& state) { state(in, waiting, open); }
  };
  struct Batches {
    std::vector<PlannedBatch> batches;
    std::vector<std::uint32_t> members;
    void visit_state(Snapshot& state) { state(batches, members); }
  };
  struct Packer {
    Packing packing;
    std::vector<Candidate> candidates;
    std::vector<Tally> tallies;  // by stream
  };
  struct Groups {
    GroupPlanner program;
    std::uint64_t turns = 0;
  };
  struct Rivals {  // users, where several have streams that are planned or wait
    bool compete = false;
    double equal = 0;               // what each would have for his weight if all wanted more
    std::vector<Portion> portions;  // scratch, by user
    std::vector<std::uint32_t> claimants;
  };
  struct Search {  // of one tick: who is admitted, who goes
    Trial trial;
    std::size_t tried = 0;  // streams, over all trials
    std::size_t limit = 0;  // of them, for now
    std::vector<std::uint32_t> order;
    std::size_t victims = 0;  // the first of `order`
    bool exhausted = false;   // nobody else may go
  };

  Times times_;
  const CoordinatorSettings settings_;
  const StrideCurve curve_;
  Users users_;
  std::vector<Stream> streams_;
  Roster roster_;
  std::vector<Partition> parts_;
  Batches planned_, kept_;
  Packer packer_;
  Groups groups_;
  Rivals rivals_;
  Search search_;
  TimeNs next_tick_ns_ = 0;
};

}  // namespace leat::core::streams
