// Words shared by every room of the core. Times are nanoseconds of one monotonic clock that the driver owns: the daemon
// passes CLOCK_MONOTONIC, the simulator its own. The core never reads a clock.
#pragma once

#include <cstdint>

#include "leat/outcome.h"

namespace leat::core {

using TimeNs = std::int64_t;
inline constexpr TimeNs kNever = INT64_MAX;
inline constexpr std::uint32_t kNone = UINT32_MAX;

using StreamId = std::uint32_t;
using ModuleId = std::uint32_t;  // index over all modules of all applications
using RouteId = std::uint32_t;
using PartitionId = std::uint32_t;

// Names one request from submit() to its answer. The generation makes a stale handle harmless.
struct RequestHandle {
  std::uint32_t index = kNone;
  std::uint32_t generation = 0;
  bool operator==(const RequestHandle&) const = default;
};
struct BatchHandle {
  std::uint32_t index = kNone;
  std::uint32_t generation = 0;
  bool operator==(const BatchHandle&) const = default;
};

}  // namespace leat::core
