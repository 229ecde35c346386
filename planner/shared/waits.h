// What a request waits where modules share partitions in time: the latency model that shared plans are promised by.
//
// A pool is n partitions of one class that hold the same modules; R is its longest run. Requests are collected in
// cohorts of B at the entry only. With X requests per second of the application, utilisation U of the busiest pool on
// its way and C classes on the host:
//
//   L = max((B - 1) / X, D) + sum over stages [ .75 R / n + d(b) (1 + (ceil(B k / b) - 1) / n) ]
//   D = C ln(100) / 2 U^2 / ((1 - U) X)
//
// .75 R / n waits for the next of n busy partitions (between the mean, .5, and the worst case, 1). D is the 99th
// percentile of the backlog of Poisson arrivals with an exponential tail, charged once: in tandem only the bottleneck
// queues. Forming a cohort overlaps with congestion, hence the maximum. Times in microseconds, rates in requests per
// second. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace leat::planner {

// Cohorts that routes are tried with.
inline constexpr std::uint32_t kCohorts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

// D, for one application.
inline double backlog_us(double utilisation, double requests_per_second, std::uint32_t classes) noexcept {
  return 1e6 * classes * std::log(100.0) / 2 * utilisation * utilisation / ((1 - utilisation) * requests_per_second);
}

// The wait before the first stage: a cohort of `cohort` requests forms while older ones are worked off.
inline double entry_wait_us(std::uint32_t cohort, double utilisation, double requests_per_second,
                            std::uint32_t classes) noexcept {
  return std::max(1e6 * (cohort - 1) / requests_per_second, backlog_us(utilisation, requests_per_second, classes));
}

// One stage: `items` of a cohort in batches of `batch`, each of which runs `run_us`, on a pool of n with longest run R.
inline double stage_us(double run_us, double items, std::uint32_t batch, double longest_run_us, double n) noexcept {
  const double batches = std::ceil(items / batch - 1e-9);
  return .75 * longest_run_us / n + run_us * (1 + (std::max(1.0, batches) - 1) / n);
}

}  // namespace leat::planner
