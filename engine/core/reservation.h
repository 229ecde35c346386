// Reservations: PPipe's data plane (section 5.4, appendix A.3, Algorithms 1-2), and ours, which commits early and grows.
//
// A task gets, when it is queued, an itinerary: for each stage of one route a partition, a time there, and the links' time
// between. A booking is one batch-to-be of one stage on one partition; it is sent to the worker when its time has come and
// its members' features are made. Until then it may still change.
//
//   search_down (PPipe): a whole batch is booked on a whole path, as printed in Algorithm 1.
//   any other batching (ours): each task is booked alone on arrival, then
//     - the first stage's partition is the one whose uplink can have sent the features first;
//     - GROW: an unsent first-stage batch takes one task more, where the route's rate gains by it (may_grow), and its
//       members' later stages are booked anew. A batch may so be split after its first stage: nothing is gathered or copied.
//     - JOIN: at a later stage an unsent batch takes one task more, if its features arrive before that batch starts; at an inner
//       stage its members' later stages are booked anew.
//     - ROOM: while a module loses tasks, who has to wait must be in time even when the batches on its way have grown. Else a queue
//       filled up to the last moment consists of batches too late to grow, and stays so.
//
// Feedback correction: a batch that starts or ends elsewhen than booked moves its reservation; ours moves those behind it too, and
// takes durations at the module's pace. Rule: nothing here allocates.
// Thread rule: the scheduler's thread. Private to the core, like state.h.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/pool.h"
#include "engine/core/task.h"
#include "engine/core/timeline.h"
#include "engine/core/topology.h"

namespace leat::core {

using BookingId = std::uint32_t;

enum class BookingState : std::uint8_t { free, planned, sent };

struct Booking {
  BookingState state = BookingState::free;
  RouteId route = 0;
  std::uint32_t stage = 0;
  PartitionId partition = 0;
  TimeNs start_ns = 0, end_ns = 0;
  TimeNs due_ns = 0;               // its start before it was postponed
  TaskId first = kNone;            // members, by Leg::next
  std::uint32_t tasks = 0, items = 0;
  std::uint32_t unmade = 0;        // members whose previous stage has not ended
  TimeNs bound_ns = kNever;        // the last stage must end by then for every member
  BookingId previous = kNone, next = kNone;  // at its partition, by start
};

struct Leg {
  BookingId booking = kNone;
  TaskId next = kNone;             // in the booking
  TimeNs depart_ns = 0, arrive_ns = 0;  // its features on the links
};

struct Itinerary {
  std::array<Leg, kMaxStages> legs{};
};

// A leg as probed: where it would be booked.
struct LegPlan {
  PartitionId partition = kNone;
  BookingId join = kNone;          // kNone: a booking of its own
  TimeNs depart_ns = 0, arrive_ns = 0, start_ns = 0, end_ns = 0;
};
struct PathPlan {
  RouteId route = kNone;
  TimeNs end_ns = kNever, wait_ns = kNever;
  std::array<LegPlan, kMaxStages> legs{};
};

// Where a member's later stages were booked before its batch was to grow.
struct KeptLegs {
  TaskId task = kNone;
  TimeNs bound_ns = kNever;
  std::array<LegPlan, kMaxStages> legs{};  // partition, start, end, and on the links; from the stage after it on
};

inline constexpr std::uint32_t kGrowItems = 8;  // a grown batch has at most this many members

[[nodiscard]] inline bool fits(const StageSpec& stage, std::uint32_t items) noexcept { return items <= stage.latency.p50_ns.size(); }

struct Reservations {
  Reservations(const Topology& topology, std::uint32_t task_limit, std::uint32_t booking_limit)
      : bookings(booking_limit), itineraries(task_limit), first(topology.partitions.size(), kNone) {
    partitions.assign(topology.partitions.size(), Timeline(kIntervals));
    up.assign(topology.hosts.size(), Timeline(kIntervals));
    down.assign(topology.hosts.size(), Timeline(kIntervals));
    growth_ns.resize(topology.routes.size());
    lost_ppm.resize(topology.modules.size());
    planned_pace.resize(topology.modules.size());
    for (const RouteSpec& route : topology.routes) may_grow.emplace_back(route.stages.front().latency.p50_ns.size() + 1, 0);
  }
  static constexpr std::size_t kIntervals = 512;
  // One decision changes one timeline at most this often.
  static constexpr std::size_t kChanges = 64;

  Pool<Booking> bookings;
  std::vector<Itinerary> itineraries;          // by task
  std::vector<Timeline> partitions, up, down;
  std::vector<BookingId> first;                // by partition, by start
  std::vector<TimeNs> growth_ns;               // [route]: what its stages take longer with the batches that carry its rate than with one item
  std::vector<std::int64_t> lost_ppm;          // [module]: of its tasks, that could not be booked in time; smoothed
  std::vector<std::int64_t> planned_pace;      // [module]: its pace when may_grow and growth_ns were made
  std::vector<std::vector<std::uint8_t>> may_grow;  // [route][items]: a first-stage batch may grow to this many
};

}  // namespace leat::core
