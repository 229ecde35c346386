// Whether the partitions can carry the rates that the configuration states: capacity is a property of sets of
// partitions, because those that modules share are busy with one of them at a time.
#pragma once

#include <string>
#include <vector>

#include "engine/daemon/deployment/deployment.h"

namespace leat::daemon {

// The rates at which the applications are expected: `rate_rps`, or else that of their streams; background work takes
// what is left and counts nothing. 0: unknown.
[[nodiscard]] double expected_rps(const Deployment& deployment, std::size_t application);

// What the expected rates take at least of the partitions' time, each module in its cheapest batches that leave the
// rest of its path its least times, spread over the partitions as well as can be: a linear program over sets of
// partitions with the same routes. The deployment's plan is complete.
struct Capacity {
  double load = 0;  // above 1 no scheduler carries the rates; 0: none is stated, or there are too many sets to look at
  std::vector<std::uint32_t> partitions;  // those that are in the way
  std::vector<double> part;               // [application]: of their time, at the expected rates
};
[[nodiscard]] Capacity capacity(const Deployment& deployment);

}  // namespace leat::daemon
