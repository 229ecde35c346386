// A clairvoyant upper bound on goodput: no scheduler, even one that knows all arrivals, completes more of them in time.
//
// What is relaxed. (1) Each module alone: a request may be worked on there from its arrival plus the least time
// upstream (d(1) along the longest path) until its deadline less the least time downstream. Its cost is at least min_b
// d(b)/b of one partition, and the module's W partitions are taken as one fluid server W times as fast. (2) All modules
// together: a request that is in batches of b_1..b_n spends at least d_k(b_k) at module k, so the sum of d_k(b_k) over
// every path is at most the SLO.
//
// Why (1) is a bound: real batches need a partition for d(b), that is d(b)/b for each of its b requests; a fluid server
// can do whatever W partitions do. All windows have the same length and follow the arrival order, all jobs cost the
// same; so serving in arrival order and skipping whoever would be late keeps the earliest finish for every count
// (exchange argument), hence completes the maximum number.
//
// Why (2) is a bound: let f_k(l) be the lower convex hull of (d_k(b), d_k(b)/b): no request that spends l at module k
// costs it less. Let 1/X = min over l in L of max_k f_k(l_k)/W_k, L = {sums over paths <= SLO} (convex). By the minimax
// theorem there are weights y_k >= 0, sum 1, with sum_k y_k f_k(l_k)/W_k >= 1/X for all l in L. Weigh the modules' busy
// fractions by y_k: this is one server of speed at most 1, and every request that completes in time needs at least 1/X
// of it between its arrival and its deadline. Then as in (1). X is found by bisection: the least l_k with f_k(l_k) <=
// W_k/X, and whether the longest path fits.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/model/topology.h"
#include "engine/sim/workload/arrivals.h"

namespace leat::sim {

struct Bound {
  std::uint64_t requests = 0;  // at most this many can complete in time
  double rate_rps = 0;         // X: the largest rate that can be carried for ever
};

// For one application and requests of one item each. Batches up to the routes' own. Modules behind a fan-out, or taken
// by chance, count with their mean items per request in (2) and are left out of (1). Sharing of partitions is relaxed
// away.
[[nodiscard]] Bound clairvoyant_bound(const core::Topology& topology, std::uint32_t application,
                                      std::span<const TimeNs> arrivals);

}  // namespace leat::sim
