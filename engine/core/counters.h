// What the scheduler counts. Owned by the scheduler, read through Scheduler::counters(); the daemon copies it into the
// counters segment. All values only grow, but gauges (in_flight, queued, busy, up). Ledger: submitted = completed +
// late + dropped + failed + rejected + in_flight, in `total` and in every stream.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"
#include "leat/outcome.h"

namespace leat::core {

struct RequestCounters {
  std::uint64_t submitted = 0;
  std::array<std::uint64_t, kOutcomeCount> answered{};  // by Outcome
  std::array<std::uint64_t, kReasonCount> reasons{};    // of everything but completed and late
  std::uint64_t in_flight = 0;
  std::uint64_t within_share = 0;  // accepted within their user's share, where users compete
  std::uint64_t granted = 0;       // of streams that wait for grants: turns given while there was no room for all

  [[nodiscard]] std::uint64_t of(Outcome o) const { return answered[static_cast<std::size_t>(o)]; }
  [[nodiscard]] std::uint64_t of(Reason r) const { return reasons[static_cast<std::size_t>(r)]; }
  [[nodiscard]] bool balanced() const {
    std::uint64_t sum = in_flight;
    for (std::uint64_t n : answered) sum += n;
    return sum == submitted;
  }
};

struct ModuleCounters {
  std::uint64_t tasks = 0;         // that reached this module
  std::uint64_t tasks_run = 0;     // that finished here
  std::uint64_t dropped_here = 0;  // requests given up here
  std::uint64_t batches = 0;
  std::uint64_t items = 0;         // in those batches
  std::uint64_t queue_ns_sum = 0;  // of tasks put into a batch: from arrival at the module to the batch
  std::uint64_t busy_ns = 0;       // execution time of its batches, all stages
  std::uint64_t left_out = 0;      // sub-requests over the fan-out cap, not run
  std::uint32_t queued = 0;        // now
};

struct PartitionCounters {
  std::uint64_t batches = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t lost = 0;     // times
  std::uint32_t running = 0;  // batches it holds now
  bool up = false;
};

struct Counters {
  RequestCounters total;
  std::vector<RequestCounters> streams;  // by StreamId; kept after close until the id is opened again
  std::vector<ModuleCounters> modules;
  std::vector<PartitionCounters> partitions;
  std::uint64_t stale_events = 0;      // about unknown handles, streams or partitions: ignored
  std::uint64_t clock_steps_back = 0;  // calls with a smaller `now` than the one before
  std::uint64_t retries = 0;           // tasks queued again after their partition was lost
  std::uint64_t left_undecided = 0;    // requests that a policy had forgotten, answered by the core
  std::uint64_t idled_on_purpose = 0;  // decisions to leave a partition idle for a stream that is about to need it

  void visit_state(Snapshot& state) {
    state(total, modules, partitions, stale_events, clock_steps_back, retries, left_undecided, idled_on_purpose);
    state.changed(streams);
  }
};

}  // namespace leat::core
