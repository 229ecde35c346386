// How many requests at most are in time where every module may use every partition: a bound on any scheduler, with
// foresight too.
//
//   c* = min over batches of the sum over modules of m d(b) / b, subject to the sum of d(b) over any path <= SLO: the
// least partition time that a request costs. Of the arrivals of any [s, t], at most n (t - s + SLO) / c* are in time;
// the largest such choice is a leaky bucket: v falls by n a second, a request is let in while v + c* <= n SLO.
// Several applications: time is given in the order of weight / c*.
#pragma once

#include <vector>

#include "engine/core/model/topology.h"
#include "engine/sim/workload/arrivals.h"

namespace leat::bench {

// c* of one application, ns on a partition of speed 1; by duality, so never above it.
[[nodiscard]] double min_cost_ns(const core::Topology& t, std::uint32_t application);

// [application]: how many of its requests at most. `arrivals`' streams are the applications; n: the sum of speeds.
[[nodiscard]] std::vector<std::uint64_t> shared_bound(const core::Topology& t, double n,
                                                      const std::vector<sim::Arrival>& arrivals,
                                                      const std::vector<double>& weights);

}  // namespace leat::bench
