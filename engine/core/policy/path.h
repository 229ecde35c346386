// The partitions of a route's later stages, and what draws among equals.
#pragma once

#include "engine/core/policy/scheduler_interface.h"

namespace leat::core {

// Of each later pool the partition that is expected to be free first.
[[nodiscard]] Path choose_path(const StateView& view, RouteId route, PartitionId first, std::uint32_t items,
                               TimeNs start) noexcept;

[[nodiscard]] inline std::uint64_t next_random(std::uint64_t& state) noexcept {
  state += 0x9E3779B97F4A7C15u;
  std::uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace leat::core
