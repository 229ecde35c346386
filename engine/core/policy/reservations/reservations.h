// What schedulers have in common that reserve ahead, after PPipe's data plane (section 5.4, appendix A.3): a task gets,
// when it is queued, an itinerary: for each stage of one route a partition, a time there, and the links' time between.
// A booking is one batch-to-be of one stage on one partition; it is sent to the worker when its time has come and its
// members' features are made. Until then it may still change.
//
// Leat's own is reservation_scheduler.h; PPipe's as printed and its ablation are in engine/papers. What is booked, and
// when, is theirs; everything that holds for any booking is here:
//
//   reservations.cpp  the scheduler's operations: sending, passing on, losing
//   itineraries.cpp   booked, changed, given back
//   earliest_slot.cpp where a task could go, on links and partitions
//   pool_index.cpp    what is kept of each partition, so that a search over hundreds costs little
//
// A search looks at pool_bounds.h (who could start first), unsent.h (which batch to join), min_tree.h (who has
// something to do).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/policy/registry.h"
#include "engine/core/policy/reservations/min_tree.h"
#include "engine/core/policy/reservations/pool_bounds.h"
#include "engine/core/policy/reservations/timeline.h"
#include "engine/core/policy/reservations/unsent.h"
#include "engine/core/snapshot.h"

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

// A leg as found: where it would be booked.
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

// A stage's table reaches that far.
[[nodiscard]] inline bool fits(const StageSpec& stage, std::uint32_t items) noexcept {
  return items <= stage.latency.p50_ns.size();
}

// items + more in one batch, or items alone: at least 5 % more per second?
[[nodiscard]] inline bool gains(const StageSpec& stage, std::uint32_t items, std::uint32_t more) noexcept {
  return stage.latency.p50_ns[items - 1] * (items + more) * 100 >= stage.latency.p50_ns[items + more - 1] * items * 105;
}

class Reservations : public ComponentScheduler {
 public:
  ConsumerId offer(QueueId queue) noexcept override;
  bool next(PartitionId partition) noexcept override;
  [[nodiscard]] bool books() const noexcept override { return true; }
  void freed(std::uint32_t batch) noexcept override;
  bool passed(TaskId task, std::uint32_t batch, bool alive) noexcept override;
  void withdraw(TaskId task) noexcept override { unbook(task, 0); }
  void forget(TaskId task) noexcept override;
  void partition(PartitionId partition, bool up) noexcept override;
  void advance() noexcept override;
  [[nodiscard]] TimeNs next_timer() const noexcept override;
  void audit() const override;
  void visit_state(Snapshot& state) override;

 protected:
  struct Manner {
    bool scaled = false;       // durations are taken at the module's latency scale, not as profiled
    bool corrects = false;     // a batch that runs over moves those behind it
    bool append_only = false;  // nothing is booked before what is booked already
    bool longest_idle = true;  // of equals at the entry the partition that has been idle longest, not the pool's first
  };
  Reservations(const Making& from, const Manner& manner);

  // ---- what a scheduler says ----
  enum class Booked : std::uint8_t { done, late, wait };
  [[nodiscard]] virtual TaskId next_task(const TaskQueue& queue) const noexcept = 0;  // kNone: none waits
  // The end of the module's stages by which the task can still be in time; kNever: whenever.
  [[nodiscard]] virtual TimeNs bound_of(ModuleId module, TaskId task) const noexcept = 0;
  // Books the task, perhaps with others; late: it cannot be in time; wait: not yet.
  [[nodiscard]] virtual Booked book_waiting(QueueId queue, TaskId task, TimeNs bound) noexcept = 0;
  // It was booked, or is late: then it is dropped.
  virtual void was_booked(const TaskQueue& queue, TaskId task, bool late) noexcept;
  virtual void sent(const Booking&, std::uint32_t) noexcept {}  // as that batch
  // A stage has ended and the task is not booked for the next one. False: it has nowhere to go.
  [[nodiscard]] virtual bool book_next(TaskId, const Batch&) noexcept { return false; }

  static constexpr std::uint32_t kChangedTasks = 9;  // one decision books so many tasks anew at most, or a batch
  static constexpr std::size_t kIntervals = 512;
  static constexpr std::size_t kCandidates = 4096;  // unsent batches that one search compares at most
  static constexpr std::size_t kChanges = 64;       // one decision changes one timeline at most this often

  struct Links {
    std::vector<Timeline> up, down;  // by host
    bool equal = true;               // a transfer takes as long between any two hosts
    void visit_state(Snapshot& state) { state(up, down); }
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
    void visit_state(Snapshot& state) { state(unsent, bounds); }
  };
  // Features that go to a stage: when they can be where, from below, and how long they take to another host, where that
  // is the same for all.
  struct Departure : PoolBounds::Ready {
    TimeNs move_ns = 0;
  };

  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] TimeNs free_ns(PartitionId p) const noexcept { return view_.machine.partition(p).free_ns; }
  [[nodiscard]] TimeNs duration(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
    const TimeNs run = route.stages[k].latency.p50_ns[items - 1];
    return manner_.scaled ? view_.load.module(route.module).scaled(run) : run;
  }

  // pool_index.cpp
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

  // earliest_slot.cpp: nothing changes
  [[nodiscard]] TimeNs stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept;
  [[nodiscard]] bool usable(PartitionId p) const noexcept {
    if (!view_.machine.partition(p).up || !timelines_[p].room(kChanges)) return false;
    if (links_.up.empty()) return true;
    const std::uint32_t h = view_.topology().partitions[p].host;
    return links_.up[h].room(kChanges) && links_.down[h].room(kChanges);
  }
  void travel(const RouteSpec& route, std::size_t k, PartitionId from, std::uint32_t items, const Departure& when,
              LegPlan& leg) const noexcept;
  void travel_each(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t members,
                   LegPlan& leg) const noexcept;
  [[nodiscard]] bool extends(const Booking& booking, TimeNs end) const noexcept;
  [[nodiscard]] LegPlan earliest_entry(RouteId id, std::uint32_t items, bool by_uplink) const noexcept;
  // Stage after stage: next(k, the leg before) says where it goes on.
  template <class Next>
  [[nodiscard]] PathPlan path_of(RouteId id, std::uint32_t items, bool by_uplink, Next&& next) const noexcept {
    const RouteSpec& route = view_.route(id);
    PathPlan plan{.route = id};
    plan.legs[0] = earliest_entry(id, items, by_uplink);
    if (plan.legs[0].partition == kNone) return plan;
    TimeNs service = duration(route, 0, items);
    for (std::size_t k = 1; k < route.stages.size(); ++k) {
      plan.legs[k] = next(k, plan.legs[k - 1]);
      if (plan.legs[k].partition == kNone) return plan;
      service += duration(route, k, items) + plan.legs[k].arrive_ns - plan.legs[k].depart_ns;
    }
    plan.end_ns = plan.legs[route.stages.size() - 1].end_ns;
    plan.wait_ns = plan.end_ns - view_.now - service;
    return plan;
  }
  [[nodiscard]] LegPlan earliest_own(RouteId route, std::size_t k, PartitionId from, std::uint32_t items,
                                     const Departure& when, bool apart) const noexcept;
  [[nodiscard]] LegPlan earliest_in_pool(RouteId route, std::size_t k, std::uint32_t items,
                                         TimeNs ready) const noexcept;

  // itineraries.cpp
  [[nodiscard]] BookingId open_booking(RouteId route, std::size_t stage, const LegPlan& leg) noexcept;
  void close_booking(BookingId booking) noexcept;
  void move_end(Booking& booking, TimeNs end) noexcept;
  void use_links(const Leg& leg, PartitionId from, PartitionId to, bool reserve) noexcept;
  void book_leg(TaskId task, RouteId route, std::size_t k, const LegPlan& plan, TimeNs bound) noexcept;
  void book_path(TaskId task, const PathPlan& plan, TimeNs bound) noexcept;
  void book_together(const TaskQueue& queue, TaskId head, PathPlan plan, std::uint32_t items, bool one_by_one) noexcept;
  void unbook(TaskId task, std::size_t from) noexcept;

  // reservations.cpp
  void drop_late(BookingId booking) noexcept;
  void send(BookingId booking) noexcept;
  void postpone(PartitionId partition, TimeNs at) noexcept;

  const Manner manner_;
  Pool<Booking> bookings_;
  std::vector<Itinerary> itineraries_;  // by task
  std::vector<BookingId> booking_of_;   // by batch: what it was booked as
  ByPartition<Timeline> timelines_;
  Links links_;
  ByPartition<TimeNs> planned_ns_;  // start of the first booking that has not been sent; kNever: there is none
  ByPartition<std::vector<Place>> places_;
  MinTree looks_;                                   // by slot: next() has nothing to do before
  mutable MinTree timers_;                          // by slot: timer_of(); what is over is renewed when somebody asks
  TimeNs forgot_ns_ = INT64_MIN / 2;                // when all timelines last forgot what is over
  std::vector<StageBook> books_;                    // [route * kMaxStages + stage]
  ByPartition<BookingId> first_;                    // by start
  std::array<std::uint32_t, kLevels> unsent_of_{};  // tasks in unsent bookings
};

}  // namespace leat::core
