// Served load: the highest rate at which a set of partitions can serve a mix of request sizes within an SLA, every
// request of b items running whole on one partition. It is the value of the linear program
//   max L  s.t.  sum_k y[k][b] = L share[b],   sum_b y[k][b] latency[k][b] <= instances[k],   y[k][b] = 0 where latency
//   > SLA:
// no partition is loaded above 1, and every batch class runs only where it fits. A measure of capacity, without
// queueing. Units: seconds, requests per second. Any thread: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

struct SizeDemand {
  std::vector<double> batch_share;             // [batch - 1], sums to 1
  std::vector<std::vector<double>> latency_s;  // [size][batch - 1]
  double sla_s = 0;
};

struct ServedLoad {
  double rate_rps = 0;        // 0: some class fits on no partition that there is
  std::vector<double> price;  // [size]: dual prices: for any instances n, served_load(n) <= sum n[k] price[k]
};

ServedLoad served_load(const SizeDemand& demand, const std::vector<double>& instances);

}  // namespace leat::planner
