// A host's partitions grouped into the pooled problem's GPU types: those that profiles, memory, price and size cannot
// tell apart, nor how features pass between them and each other one: GPUs with a fast way between them are a type.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/host.h"
#include "planner/pooled/problem.h"

namespace leat::planner {

struct HostTypes {
  std::vector<GpuType> types;
  std::vector<std::vector<std::uint32_t>> members;  // [type]: indexes into Host::partitions
  std::vector<double> pair_gbps;                    // PooledProblem's: between any two members of two types
};

// In order of first appearance.
HostTypes types_of(const Host& host);

}  // namespace leat::planner
