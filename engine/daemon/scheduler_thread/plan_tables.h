// What the scheduler thread needs of a plan beside what the core does: which session of a worker runs a stage, where
// its features go, which applications are served. Made by the control thread with the core's plan and swapped with it;
// a batch goes by the tables of the plan that it was formed under. Nothing in it changes while it is in force.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/core/scheduler.h"
#include "engine/daemon/deployment/capacity/task_sizes.h"
#include "engine/record/recorded_core.h"
#include "shm/src/segments/feature_slots.h"

namespace leat::daemon {

inline constexpr std::uint32_t kMaxEdges = 128;  // records in the counters segment

struct PlanTables {
  struct StageEdges {
    std::uint32_t in = core::kNone, out = core::kNone;  // kNone: it takes frames, it ends with results
  };
  struct RouteLimits {
    std::uint32_t batch = 1, fan_out_cap = 1;
  };
  // A route's stages are numbered on from first_stage[route]; session_of[partition][that number]: the worker's session,
  // or kNone.
  std::vector<std::uint32_t> first_stage;
  std::vector<std::vector<std::uint32_t>> session_of;
  std::vector<StageEdges> stages;  // [that number]
  // [application]: partitions with a session that takes its frames; a bitstream's access units go to all of them.
  std::vector<std::vector<std::uint32_t>> takes_frames;
  std::vector<RouteLimits> routes;                                // as the topology says
  std::vector<std::pair<std::uint32_t, shm::FeatureSpec>> edges;  // those that it uses, by their numbers
  std::uint32_t modules = 0;
  std::vector<std::uint32_t> first_of;  // by core module id: its application's first
  std::vector<ModuleSizes> sizes;       // by core module id
  std::vector<std::uint32_t> heirs;     // [application]: whose its streams are from now on; kNone, or none: nobody's
  std::vector<std::uint8_t> closed;     // [application]: nothing is served of it any more; none: all are
  record::Names names;                  // for who reads the record
};

[[nodiscard]] std::vector<PlanTables::RouteLimits> route_limits(const core::Topology& topology);

// A plan, ready to take over. Thread rule: the control thread's, but from the command that hands it over to the event
// that gives it back.
struct LoopPlan {
  record::PreparedPlan prepared;
  core::ActivePlan* id = nullptr;  // of prepared.core, which is the core's own while it is in force
  PlanTables tables;
  std::vector<std::pair<std::uint32_t, shm::FeatureRows>> new_rows;  // of edges that no plan before has used
  bool measured_anew = false;                                        // Scheduler::replace
};

}  // namespace leat::daemon
