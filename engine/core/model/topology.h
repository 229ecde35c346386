// What the scheduler schedules over: applications, modules, routes, stages, partitions, links, as flat tables of
// numbers. Built from the planner's types; validated once, at the door.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/types.h"
#include "planner/application.h"
#include "planner/plan.h"

namespace leat::core {

inline constexpr std::size_t kMaxModulesPerApplication = 16;
inline constexpr std::size_t kMaxStages = 8;
inline constexpr std::size_t kMaxBatch = 256;

struct LatencyTable {
  std::vector<TimeNs> p50_ns;  // [b-1]: one batch of b items, b = 1..max
  std::vector<TimeNs> p99_ns;
};

struct StageSpec {
  std::vector<PartitionId> pool;
  LatencyTable latency;
  std::int64_t transfer_bytes = 0;  // per item, to the next stage
  // Of a batch's latency: so much of it the next batch there overlaps, where batches do. What is left is how long a
  // batch occupies its partition while others wait.
  std::uint32_t overlap_permille = 0;

  [[nodiscard]] TimeNs overlap_ns(std::uint32_t items) const noexcept {
    return latency.p50_ns[items - 1] * overlap_permille / 1000;
  }
};

struct RouteSpec {
  ModuleId module = 0;
  std::uint32_t batch = 1;
  double rate_rps = 0;
  std::vector<StageSpec> stages;
};

struct ModuleSpec {
  std::uint32_t application = 0;
  std::vector<ModuleId> before, after;  // predecessors, successors (ids over all applications)
  double items_per_request = 1;
  double units_per_item = 1;     // the mean, where items differ
  bool differs_in_size = false;  // its items do (TaskSizes)
  std::uint32_t fan_out_cap = 1;
  TimeNs budget_ns = 0;  // 0: none
  std::vector<RouteId> routes;

  [[nodiscard]] double units_per_request() const noexcept { return items_per_request * units_per_item; }
};

struct ApplicationSpec {
  TimeNs slo_ns = 0;
  double rate_rps = 0;
  std::uint32_t weight = 0;       // of its part of each user's share; 0: it has none of its own
  std::vector<ModuleId> modules;  // topological order
  // Nothing of it is served any more: what comes after it may have other modules, as many. Its routes are never up.
  bool retired = false;
  std::uint32_t heir = kNone;  // another application: this one's streams are that one's once the plan is in force
};

struct PartitionSpec {
  double size = 1, price = 1;
  std::uint32_t device = 0, host = 0;
};

struct LinkSpec {
  double up_bytes_per_ns = 0, down_bytes_per_ns = 0;  // 0: free
};

struct Topology {
  std::vector<ApplicationSpec> applications;
  std::vector<ModuleSpec> modules;
  std::vector<RouteSpec> routes;
  std::vector<PartitionSpec> partitions;
  std::vector<LinkSpec> hosts;

  static Topology from(const planner::Plan& plan, std::span<const planner::Application> applications);
  // Empty: valid. Otherwise one line: which index, what is wrong.
  [[nodiscard]] std::string problem() const;
};

// The longest path through a valid application whose i-th module takes duration[i].
template <typename Duration>
[[nodiscard]] Duration longest_path(const Topology& t, const ApplicationSpec& app,
                                    const std::array<Duration, kMaxModulesPerApplication>& duration) {
  const ModuleId first = app.modules.front();
  std::array<Duration, kMaxModulesPerApplication> end{};
  Duration longest = 0;
  for (ModuleId m : app.modules) {
    Duration start = 0;
    for (ModuleId before : t.modules[m].before) start = std::max(start, end[before - first]);
    end[m - first] = start + duration[m - first];
    longest = std::max(longest, end[m - first]);
  }
  return longest;
}

}  // namespace leat::core
