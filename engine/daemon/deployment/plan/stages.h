// Routes of several stages, as they are deployed: which blocks a stage's session holds, and the edges between stages
// with the features that lie there. An edge is a module's boundary between two blocks; routes that cut the module at
// the same place share it.
//
// Limits, all here or where they are named: an edge has room for what its stages can have between them within the SLO
// (Little's law with the slowest stage's rate) and for two batches of each of their partitions, at most
// shm::kMaxFeatureRows; all edges together take at most limits.feature_mib. Pure. Errors are one line. Thread rule:
// values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/device_pairs.h"
#include "leat/result.hpp"
#include "planner/plan.h"
#include "shm/src/segments/feature_slots.h"

namespace leat::daemon {

struct BlockRange {
  std::uint32_t first = 0, end = UINT32_MAX;  // [first, end); UINT32_MAX: to the model's end
  bool operator==(const BlockRange&) const = default;
};
[[nodiscard]] BlockRange blocks_of(const planner::Route& route, std::size_t stage);

struct FeatureEdge {
  std::uint32_t application = 0, module = 0;  // of its application
  std::uint32_t boundary = 0;                 // the block behind it
  shm::FeatureSpec spec;
  std::vector<std::uint32_t> from, to;  // partitions
  std::uint32_t number = 0;             // that workers, the scheduler thread and the counters know it by
  std::string place;                    // of the device memory it lies in; empty: host memory
  std::vector<DevicePair> ways;         // of each (from, to) with a device, once: what was found out about it
};

// What is wrong with a route's stages for this module; empty: nothing. Precondition: its block ranges follow one
// another (planner/io/plan_io.h refuses a plan where they do not).
[[nodiscard]] std::string problem_of_stages(const planner::Route& route, const ModuleConfig& module);

// The edges of a plan's routes. `where`: what the message begins with.
Result<std::vector<FeatureEdge>> edges_of(const Config& config, const planner::Plan& plan, const std::string& where);

// Device memory for the edges whose producers share a place that every consumer can map, whose modules run there, and
// whose rows a device can take where they lie.
void place_edges(const Config& config, const std::vector<PartitionConfig>& partitions,
                 std::span<const DevicePair> pairs, std::vector<FeatureEdge>& edges);

// Index of an edge; UINT32_MAX: there is none (the model begins or ends there).
[[nodiscard]] std::uint32_t edge_at(const std::vector<FeatureEdge>& edges, std::uint32_t application,
                                    std::uint32_t module, std::uint32_t boundary);

[[nodiscard]] std::string name_of(const FeatureEdge& edge, const Config& config);  // "shapes/detect cut 2"

}  // namespace leat::daemon
