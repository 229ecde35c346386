// What a host offers: partitions, or devices that the planner may cut into shares, and how data moves between them.
// host_io reads the JSON of docs/guide/plans.md. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/application.h"
#include "planner/plan.h"
#include "planner/profile.h"

namespace leat::planner {

struct HostPartition {
  Partition partition;          // whole; a plan may hold 1/v of it
  std::uint32_t max_share = 1;  // largest v it may be cut into
};

struct Handover {
  std::uint32_t from = 0, to = 0;  // of Host::partitions
  double gbps = 0;                 // 0: in place
};

struct Host {
  std::vector<HostPartition> partitions;
  double handover_gbps = 0;         // between two partitions; 0: handed over in place, free
  std::vector<Handover> handovers;  // ordered pairs of which more is known; then a partition to itself is in place

  [[nodiscard]] double gbps(std::uint32_t from, std::uint32_t to) const;
};

// Error: one line naming file and key.
Result<Host> parse_host(std::string_view json, const std::string& name);
Result<Host> read_host(const std::string& path);
// This machine's cores, `cores_each` to a partition, as cpu_host.h divides them up; what the applications' requests
// take of a partition is looked up in the profiles. The hand-over is shared memory: free.
Result<Host> this_host(std::uint32_t cores_each, std::span<const Application> applications,
                       std::span<const Profile> profiles);

}  // namespace leat::planner
