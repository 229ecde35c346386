// Batches on their way in a simulated run, and what executes them.
#pragma once

#include <array>
#include <cstdint>

#include "engine/core/model/topology.h"

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

}  // namespace leat::sim
