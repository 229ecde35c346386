// Leat's reservations, for models cut over several partitions. It commits early and grows: each task is booked alone on
// arrival, then
//   - the first stage's partition is the one whose uplink can have sent the features first;
//   - GROW: an unsent first-stage batch takes one task more, where the route's rate gains by it (may_grow), and its
//     members' later stages are booked anew. A batch may so be split after its first stage: nothing is gathered or
//     copied.
//   - JOIN: at a later stage an unsent batch takes one task more, if its features arrive before that batch starts; at
//   an
//     inner stage its members' later stages are booked anew.
//   - WHOLE: where a route's rate needs batches and the SLO leaves less than a run beside them (plan_whole), waiting
//     tasks are too late to grow: they are booked together, as many as the rate needs, and the first waits for the
//     others. What is not in time so is not squeezed in alone. Members travel one by one, between what is on the links.
//   - ROOM: while a module loses tasks, who has to wait must be in time even when the batches on its way have grown.
//     Else a queue filled up to the last moment consists of batches too late to grow, and stays so.
//   - PLACE: a task that would wait takes the place of the first of a lower level (a class, or beyond its user's share)
//     of which nothing has been sent; that one is booked anew.
//
// Feedback: a batch that starts or ends elsewhen than booked moves its reservation and those behind it; durations are
// taken at the module's latency scale.
//
//   reservation_scheduler.cpp  what joins the rest
//   admission.cpp              what a queue does with its tasks
//   joining.cpp                paths that join what is booked
//   growing.cpp                an unsent batch grows
//   growth.cpp                 what may grow, and the room that is left for it
//   reserved_canaries.cpp      canaries
#pragma once

#include "engine/core/policy/canary.h"
#include "engine/core/policy/reservations/reservations.h"

namespace leat::core {

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

class ReservationScheduler final : public Reservations {
 public:
  explicit ReservationScheduler(const Making& from);
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;
  void visit_state(Snapshot& state) override {
    Reservations::visit_state(state);
    state(canaries_, growth_ns_, whole_, together_, may_grow_, lost_ppm_, planned_scale_, arrivals_);
  }

 private:
  // What a route is entered with where single tasks would not carry its rate, and how long the first waits for it.
  struct Whole {
    std::uint32_t items = 1;
    TimeNs wait_ns = 0;
  };

  // reservation_scheduler.cpp
  [[nodiscard]] TaskId next_task(const TaskQueue& queue) const noexcept override;
  void was_booked(const TaskQueue& queue, TaskId task, bool late) noexcept override;
  void sent(const Booking& booking, std::uint32_t batch) noexcept override;

  void count_arrival(ModuleId module, std::uint32_t items) noexcept;
  // Of a route, items a second: the plan's rate, or as many times that as comes.
  [[nodiscard]] double rate_of(const RouteSpec& route) const noexcept {
    return route.rate_rps * arrivals_[route.module].times_planned;
  }

  // growth.cpp
  void plan_growth(ModuleId module) noexcept;
  void plan_whole(RouteId route) noexcept;
  [[nodiscard]] TimeNs room_to_grow(RouteId route) const noexcept;
  [[nodiscard]] TimeNs room_after(ModuleId module) const noexcept;

  // joining.cpp: nothing changes
  [[nodiscard]] bool booked_on(const Booking& booking) const noexcept;
  [[nodiscard]] LegPlan earliest_leg(RouteId route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items,
                                     TimeNs bound, bool join, bool apart = false) const noexcept;
  [[nodiscard]] PathPlan earliest_path(RouteId route, std::uint32_t items, TimeNs bound, bool join,
                                       bool apart = false) const noexcept;

  // admission.cpp
  [[nodiscard]] TimeNs bound_of(ModuleId module, TaskId task) const noexcept override;
  [[nodiscard]] Booked book_waiting(QueueId queue, TaskId task, TimeNs bound) noexcept override;
  struct Arrival {  // a task that is to be booked
    QueueId queue;
    TaskId id;
    std::uint32_t items;
    TimeNs bound;
    bool joins;  // may ride with others
  };
  [[nodiscard]] bool comes_together(const Arrival& a) const noexcept;
  [[nodiscard]] bool can_hold(const Arrival& a) const noexcept;
  [[nodiscard]] PathPlan min_wait(const Arrival& a, bool whole) const noexcept;
  [[nodiscard]] Booked book_alone(const Arrival& a, PathPlan path, bool squeezed) noexcept;
  [[nodiscard]] bool displace(const Arrival& a, TimeNs room, PathPlan& path) noexcept;
  [[nodiscard]] Booked book_whole(QueueId queue, TaskId head, PathPlan& plan, TimeNs bound) noexcept;
  [[nodiscard]] bool grow_some(const TaskQueue& queue, TaskId task, TimeNs bound) noexcept;
  [[nodiscard]] bool any_lower(TaskId task) const noexcept;
  [[nodiscard]] bool evict(const PathPlan& plan, TaskId task) noexcept;
  [[nodiscard]] bool take_place(const TaskQueue& queue, TaskId task, TimeNs start, TimeNs bound) noexcept;

  // growing.cpp
  static_assert(kGrowItems + 1 <= kChangedTasks);
  [[nodiscard]] bool grow(LegPlan leg, TaskId task, TimeNs bound) noexcept;
  void put_back(const KeptLegs& kept, RouteId route, std::size_t from) noexcept;
  [[nodiscard]] bool book_rest(std::span<const KeptLegs> group, RouteId route, std::size_t from) noexcept;
  [[nodiscard]] bool book_through(TaskId task, const PathPlan& plan, TimeNs bound, TimeNs until) noexcept;
  [[nodiscard]] bool join_inner(TaskId task, RouteId route, std::size_t k, TimeNs bound) noexcept;

  // reserved_canaries.cpp
  [[nodiscard]] bool book_canary(const TaskQueue& queue, TaskId task) noexcept;
  [[nodiscard]] bool condemned(ModuleId module, TaskId task) const noexcept;
  void book_canary_leg(TaskId task, RouteId route, std::size_t k, const LegPlan& leg) noexcept;
  [[nodiscard]] bool book_next(TaskId task, const Batch& batch) noexcept override;
  [[nodiscard]] TimeNs min_after_ns(ModuleId module) const noexcept;

  const bool tries_;  // Policy::canaries
  Canaries canaries_;
  // [route]: what its stages take longer with the batches that carry its rate than with one item
  std::vector<TimeNs> growth_ns_;
  std::vector<Whole> whole_;
  ByModule<std::uint8_t> together_;                  // some route of it is entered by several at a time
  std::vector<std::vector<std::uint8_t>> may_grow_;  // [route][items]: a first-stage batch may grow to this many
  ByModule<std::int64_t> lost_ppm_;                  // of its tasks, that could not be booked in time; smoothed
  ByModule<std::int64_t> planned_scale_;             // its latency scale when may_grow_ and growth_ns_ were made
  struct Arrivals {
    TimeNs since_ns = 0;
    std::uint64_t items = 0;
    double times_planned = 1;  // that may_grow_ and growth_ns_ were made for
  };
  ByModule<Arrivals> arrivals_;
};

}  // namespace leat::core
