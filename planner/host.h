// What a host offers: partitions, or devices that the planner may cut into shares, and how data moves between them.
// host_io reads the JSON of docs/plans.md. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/plan.h"

namespace leat::planner {

struct HostPartition {
  Partition partition;           // whole; a plan may hold 1/v of it
  std::uint32_t max_share = 1;   // largest v it may be cut into
};

struct Host {
  std::vector<HostPartition> partitions;
  double handover_gbps = 0;      // between two partitions; 0: handed over in place, free
};

// Error: one line naming file and key.
Result<Host> parse_host(std::string_view json, const std::string& name);
Result<Host> read_host(const std::string& path);
// One `cpu` partition for each `cores_each` cores of this machine: class "cpu:N". Its hand-over is shared memory: free.
Host this_host(std::uint32_t cores_each);

}  // namespace leat::planner
