// Reservations: PPipe's data plane (section 5.4, appendix A.3, Algorithms 1-2), and ours, which commits early and
// grows.
//
// A task gets, when it is queued, an itinerary: for each stage of one route a partition, a time there, and the links'
// time between. A booking is one batch-to-be of one stage on one partition; it is sent to the worker when its time has
// come and its members' features are made. Until then it may still change.
//
//   search_down (PPipe): a whole batch is booked on a whole path, as printed in Algorithm 1.
//   any other batching (ours): each task is booked alone on arrival, then
//     - the first stage's partition is the one whose uplink can have sent the features first;
//     - GROW: an unsent first-stage batch takes one task more, where the route's rate gains by it (may_grow), and its
//       members' later stages are booked anew. A batch may so be split after its first stage: nothing is gathered or
//       copied.
//     - JOIN: at a later stage an unsent batch takes one task more, if its features arrive before that batch starts; at
//       an inner stage its members' later stages are booked anew.
//     - WHOLE: where a route's rate needs batches and the SLO leaves less than a run beside them (plan_whole), waiting
//       tasks are too late to grow: they are booked together, as many as the rate needs, and the first waits for the
//       others. What is not in time so is not squeezed in alone. Members travel one by one, between what is on the
//       links.
//     - ROOM: while a module loses tasks, who has to wait must be in time even when the batches on its way have grown.
//       Else a queue filled up to the last moment consists of batches too late to grow, and stays so.
//     - PLACE: a task that would wait takes the place of the first of a lower level (a class, or beyond its user's
//       share) of which nothing has been sent; that one is booked anew.
//
// Feedback correction: a batch that starts or ends elsewhen than booked moves its reservation; ours moves those behind
// it too, and takes durations at the module's pace.
// What a search over hundreds of partitions or batches looks at: pool_bounds.h (who could start first), unsent.h (which
// batch to join), min_tree.h (who has something to do).
// growth.cpp: what may grow; probe.cpp: where a task could go; booking.cpp: itineraries booked, changed, given back;
// entry.cpp: what a lane does with its tasks; tried.cpp: canaries; reactive.cpp: PPipe's ablation; reserved.cpp: the
// seam's operations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/policy/canary.h"
#include "engine/core/policy/min_tree.h"
#include "engine/core/policy/pool_bounds.h"
#include "engine/core/policy/registry.h"
#include "engine/core/policy/timeline.h"
#include "engine/core/policy/unsent.h"

namespace leat::core {

enum class BookingState : std::uint8_t { free, planned, sent };

struct Booking {
  BookingState state = BookingState::free;
  RouteId route = 0;
  std::uint32_t stage = 0;
  PartitionId partition = 0;
  TimeNs start_ns = 0, end_ns = 0;
  TimeNs due_ns = 0;     // its start before it was postponed
  TaskId first = kNone;  // members, by Leg::next
  std::uint32_t tasks = 0, items = 0;
  bool lone = false;                         // its one member rides with nobody
  bool canary = false;                       // and is tried though estimates condemn it (canary.h)
  std::uint32_t unmade = 0;                  // members whose previous stage has not ended
  TimeNs bound_ns = kNever;                  // the last stage must end by then for every member
  BookingId previous = kNone, next = kNone;  // at its partition, by start
};

struct Leg {
  BookingId booking = kNone;
  TaskId next = kNone;                  // in the booking
  TimeNs depart_ns = 0, arrive_ns = 0;  // its features on the links
};

struct Itinerary {
  std::array<Leg, kMaxStages> legs{};
};

// A leg as probed: where it would be booked.
struct LegPlan {
  PartitionId partition = kNone;
  BookingId join = kNone;  // kNone: a booking of its own
  TimeNs depart_ns = 0, arrive_ns = 0, start_ns = 0, end_ns = 0;
  TimeNs each_ns = 0;  // of a batch whose members travel on their own: each on the links
};
struct PathPlan {
  RouteId route = kNone;
  TimeNs end_ns = kNever, wait_ns = kNever;
  std::array<LegPlan, kMaxStages> legs{};
};

// Where a member's later stages were booked before its batch was to grow.
struct KeptLegs {
  struct Kept {
    PartitionId partition;
    TimeNs depart_ns, arrive_ns, start_ns, end_ns;
  };
  TaskId task;
  TimeNs bound_ns;
  std::array<Kept, kMaxStages> legs;  // only from the stage after it on
};

inline constexpr std::uint32_t kGrowItems = 8;  // a grown batch has at most this many members

// A stage's table reaches that far.
[[nodiscard]] inline bool fits(const StageSpec& stage, std::uint32_t items) noexcept {
  return items <= stage.latency.p50_ns.size();
}

// items + more in one batch, or items alone: at least 5 % more per second?
[[nodiscard]] inline bool gains(const StageSpec& stage, std::uint32_t items, std::uint32_t more) noexcept {
  return stage.latency.p50_ns[items - 1] * (items + more) * 100 >= stage.latency.p50_ns[items + more - 1] * items * 105;
}

class Reserved final : public Discipline {
 public:
  struct Manner {
    bool printed = false, reactive = false, append_only = false, as_simulated = false, paced = true,
         oldest_first = false;
  };
  explicit Reserved(const Making& from) : Reserved(from, Manner{}) {}
  Reserved(const Making& from, const Manner& manner);

  ServerId offer(LaneId lane) noexcept override;
  bool next(PartitionId partition) noexcept override;
  [[nodiscard]] bool books() const noexcept override { return true; }
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;
  void freed(std::uint32_t batch) noexcept override;
  bool passed(TaskId task, std::uint32_t batch, bool alive) noexcept override;
  void withdraw(TaskId task) noexcept override { unbook(task, 0); }
  void forget(TaskId task) noexcept override;
  void partition(PartitionId partition, bool up) noexcept override;
  void advance() noexcept override;
  [[nodiscard]] TimeNs next_timer() const noexcept override;
  void check() const override;

 private:
  enum class Booked : std::uint8_t { done, late, wait };
  static constexpr std::size_t kIntervals = 512;
  static constexpr std::size_t kCandidates = 4096;  // unsent batches that one search compares at most
  static constexpr std::size_t kChanges = 64;       // one decision changes one timeline at most this often

  // What a route is entered with where single tasks would not carry its rate, and how long the first waits for it.
  struct Whole {
    std::uint32_t items = 1;
    TimeNs wait_ns = 0;
  };
  // Where a partition stands among a stage's.
  struct Place {
    std::uint32_t stage;  // route * kMaxStages + stage
    std::uint32_t at;     // in the pool
  };

  // One stage of one route.
  struct StageBook {
    Unsent unsent;
    std::vector<std::uint32_t> place;  // in the pool, by the partition's slot
    PoolBounds bounds;
    std::uint32_t other = 0;  // place of a partition that is not on the first one's host; 0: there is none
  };

  // Features that go to a stage: when they can be where, from below, and how long they take to another host, where that
  // is the same for all.
  struct Departure : PoolBounds::Ready {
    TimeNs move_ns = 0;
  };

  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] TimeNs free_ns(PartitionId p) const noexcept { return view_.machine.partition(p).free_ns; }
  // Our reservations: neither PPipe's as printed nor its ablation.
  [[nodiscard]] bool books_ahead() const noexcept { return !manner_.printed && !manner_.reactive; }
  [[nodiscard]] TimeNs duration(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
    const TimeNs run = route.stages[k].latency.p50_ns[items - 1];
    return manner_.paced ? view_.sense.module(route.module).paced(run) : run;
  }

  // growth.cpp
  void plan_growth(ModuleId module) noexcept;
  void plan_whole(RouteId route) noexcept;
  [[nodiscard]] TimeNs room_to_grow(RouteId route) const noexcept;
  [[nodiscard]] TimeNs room_after(ModuleId module) const noexcept;

  // glance.cpp
  void look_again(PartitionId partition) noexcept;
  void make_books();
  [[nodiscard]] const StageBook& book(RouteId route, std::size_t k) const noexcept {
    return books_[route * kMaxStages + k];
  }
  [[nodiscard]] Unsent::Entry entry_of(BookingId id) const noexcept;
  void list_unsent(BookingId id) noexcept;
  void unlist(BookingId id) noexcept;
  void resized(BookingId id, std::uint32_t was) noexcept;
  [[nodiscard]] Departure departure(RouteId id, std::size_t k, PartitionId from, TimeNs made,
                                    std::uint32_t items) const noexcept;
  void forget_past() noexcept;
  [[nodiscard]] TimeNs timer_of(PartitionId partition) const noexcept;

  // probe.cpp: nothing changes
  [[nodiscard]] TimeNs stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept;
  [[nodiscard]] bool usable(PartitionId p) const noexcept {
    if (!view_.machine.partition(p).up || !timelines_[p].room(kChanges)) return false;
    if (up_.empty()) return true;
    const std::uint32_t h = view_.topology().partitions[p].host;
    return up_[h].room(kChanges) && down_[h].room(kChanges);
  }
  [[nodiscard]] bool booked_on(const Booking& booking) const noexcept;
  void travel(const RouteSpec& route, std::size_t k, PartitionId from, std::uint32_t items, const Departure& when,
              LegPlan& leg) const noexcept;
  void travel_each(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t members,
                   LegPlan& leg) const noexcept;
  [[nodiscard]] bool extends(const Booking& booking, TimeNs end) const noexcept;
  [[nodiscard]] LegPlan probe_entry(RouteId id, std::uint32_t items, bool by_uplink) const noexcept;
  [[nodiscard]] LegPlan probe_own(RouteId route, std::size_t k, PartitionId from, std::uint32_t items,
                                  const Departure& when, bool apart) const noexcept;
  [[nodiscard]] LegPlan probe_leg(RouteId route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items,
                                  TimeNs bound, bool join, bool apart = false) const noexcept;
  [[nodiscard]] PathPlan probe_path(RouteId route, std::uint32_t items, TimeNs bound, bool by_uplink, bool join,
                                    bool apart = false) const noexcept;

  // entry.cpp
  [[nodiscard]] TimeNs bound_of(ModuleId module, TaskId task) const noexcept;
  [[nodiscard]] Booked book_early(LaneId lane, TaskId task, TimeNs bound) noexcept;
  [[nodiscard]] PathPlan least_wait(ModuleId module, std::uint32_t items, TimeNs bound, bool whole,
                                    bool joins) const noexcept;
  [[nodiscard]] Booked book_whole(LaneId lane, TaskId head, PathPlan& plan, TimeNs bound) noexcept;
  [[nodiscard]] bool book_canary(const Lane& lane, TaskId task) noexcept;
  [[nodiscard]] bool condemned(ModuleId module, TaskId task) const noexcept;
  void book_canary_leg(TaskId task, RouteId route, std::size_t k, const LegPlan& leg) noexcept;
  [[nodiscard]] bool book_next_canary(TaskId task, const Batch& batch) noexcept;
  [[nodiscard]] TimeNs after_least_ns(ModuleId module) const noexcept;
  [[nodiscard]] Booked book_as_printed(LaneId lane, TaskId head, TimeNs bound) noexcept;
  void book_together(const Lane& lane, TaskId head, PathPlan plan, std::uint32_t items) noexcept;
  [[nodiscard]] bool grow_some(const Lane& lane, TaskId task, TimeNs bound) noexcept;
  [[nodiscard]] bool any_lower(TaskId task) const noexcept;
  [[nodiscard]] bool evict(const PathPlan& plan, TaskId task) noexcept;
  [[nodiscard]] bool take_place(const Lane& lane, TaskId task, TimeNs start, TimeNs bound) noexcept;

  // booking.cpp
  void unbook(TaskId task, std::size_t from) noexcept;
  void close_booking(BookingId booking) noexcept;
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

  // reactive.cpp
  [[nodiscard]] TimeNs stage_bound(RouteId route, std::size_t k, TimeNs from, TimeNs until) const noexcept;
  [[nodiscard]] LegPlan probe_pool(RouteId route, std::size_t k, std::uint32_t items, TimeNs ready, TimeNs bound,
                                   bool joins) const noexcept;
  [[nodiscard]] Booked book_entry(const Lane& lane, TaskId task, TimeNs until) noexcept;
  [[nodiscard]] bool book_next(TaskId task, RouteId route, std::size_t k) noexcept;

  // reserved.cpp
  [[nodiscard]] TaskId next_task(const Lane& lane) const noexcept;
  void drop_late(BookingId booking) noexcept;
  void send(BookingId booking) noexcept;
  void postpone(PartitionId partition, TimeNs at) noexcept;

  const Manner manner_;
  const bool tries_;
  Canaries canaries_;
  Pool<Booking> bookings_;
  std::vector<Itinerary> itineraries_;  // by task
  std::vector<BookingId> booking_of_;   // by batch: what it was booked as
  ByPartition<Timeline> timelines_;
  std::vector<Timeline> up_, down_;  // of each host's links
  bool equal_links_ = true;          // a transfer takes as long between any two hosts
  ByPartition<TimeNs> planned_ns_;   // start of the first booking that has not been sent; kNever: there is none
  ByPartition<std::vector<Place>> places_;
  MinTree looks_;                     // by slot: next() has nothing to do before
  mutable MinTree timers_;            // by slot: timer_of(); what is over is renewed when somebody asks
  TimeNs forgot_ns_ = INT64_MIN / 2;  // when all timelines last forgot what is over
  std::vector<StageBook> books_;      // [route * kMaxStages + stage]
  ByPartition<BookingId> first_;      // by start
  // [route]: what its stages take longer with the batches that carry its rate than with one item
  std::vector<TimeNs> growth_ns_;
  std::vector<Whole> whole_;
  ByModule<std::uint8_t> together_;                  // some route of it is entered by several at a time
  std::vector<std::vector<std::uint8_t>> may_grow_;  // [route][items]: a first-stage batch may grow to this many
  std::array<std::uint32_t, kLevels> unsent_of_{};   // tasks in unsent bookings
  ByModule<std::int64_t> lost_ppm_;                  // of its tasks, that could not be booked in time; smoothed
  ByModule<std::uint64_t> looked_at_;                // as_simulated: 1 + the serial of the last head looked at
  ByModule<std::int64_t> planned_pace_;              // its pace when may_grow_ and growth_ns_ were made
};

}  // namespace leat::core
