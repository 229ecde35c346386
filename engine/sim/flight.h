// Batches on their way in a simulated run, and what executes them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/load/estimates.h"
#include "engine/core/model/topology.h"
#include "engine/core/scheduler.h"

namespace leat::sim {

using core::TimeNs;

struct SimBatch {
  core::BatchHandle handle;
  std::uint32_t life = 0;
  bool live = false, running = false;
  bool went_on = false, goes_on = false;  // as Execution says
  const core::Topology* plan = nullptr;   // under which it was formed
  core::RouteId route = 0;
  core::ModuleId module = 0;
  core::RouteId then = core::kNone;  // Action::then
  std::uint32_t stage = 0, last_stage = 0, items = 0, tasks = 0;
  TimeNs start_ns = 0, began_ns = 0;
  std::uint32_t next = core::kNone;  // behind it at its partition
  std::array<core::PartitionId, core::kMaxStages> path{};
};

struct Unit {  // what executes on one partition
  bool up = true;
  std::uint32_t running = core::kNone, first = core::kNone, last = core::kNone;
  std::uint32_t held = 0;  // batches here, running or behind
  std::int64_t slow_permille = 1000;
};

struct SimFlights {
  explicit SimFlights(std::uint32_t n)
      : batches(n), arrival_of(std::size_t{n} * core::kMaxBatch), item_of(arrival_of.size()) {}

  std::vector<SimBatch> batches;
  // [batch * kMaxBatch + i]: arrival of the batch's i-th task, and which of its sub-requests it is
  std::vector<std::uint32_t> arrival_of, item_of;
};

struct SimArrivals {  // what became of each arrival
  explicit SimArrivals(std::size_t n) : spent(n, 0), arrives(n, 0), deadline(n, 0), answered(n, 0) {}

  std::vector<TimeNs> spent;     // execution time so far
  std::vector<TimeNs> arrives;   // reservations: when its features are where they go
  std::vector<TimeNs> deadline;  // on the clock that the scheduler sees
  std::vector<std::uint8_t> answered;
};

struct SimScratch {
  std::vector<core::TaskResult> results = std::vector<core::TaskResult>(core::kMaxBatch);
  std::vector<core::TaskRef> refs = std::vector<core::TaskRef>(core::kMaxBatch);
  std::vector<core::Sample> samples = std::vector<core::Sample>(4096);
};

}  // namespace leat::sim
