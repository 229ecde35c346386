// What bench/micro/scheduler measures: topologies, drivers, and what a call of each costs. Times are of the thread's
// own CPU clock, so that what else runs on the host counts only through its caches. One thread.
#pragma once

#include <ctime>
#include <functional>
#include <vector>

#include "engine/sim/simulator.h"
#include "tools/base/json/json.h"

namespace leat::bench {

extern std::uint64_t allocations;  // scheduler.cpp counts them (counted_allocations.h)

inline double cpu_ns() {
  timespec t{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline constexpr std::uint32_t kBatch = 8;
inline constexpr core::TimeNs kMs = 1'000'000;

// A chain of modules of 5 + b ms, each on its part of the partitions; `stages` > 1: one module, cut into so many, over
// hosts of eight partitions with links.
[[nodiscard]] core::Topology chain(std::uint32_t modules, std::uint32_t partitions);
[[nodiscard]] core::Topology pipeline(std::uint32_t stages, std::uint32_t partitions);
[[nodiscard]] double rate_of(const core::Topology& t);  // requests/s at 90 % of the smallest pool
[[nodiscard]] std::vector<core::TimeNs> arrivals(double rate, std::size_t requests);

struct Cost {
  double ns_per_request = 0;
  std::uint64_t allocations = 0;  // in the core, after set-up
  double goodput = 0;
};
// The core under a driver that does nothing but move a clock. `now_and_then`, where given, is called every 4096
// requests.
[[nodiscard]] Cost drive(const core::Topology& t, const core::Policy& policy,
                         const std::vector<core::StreamConfig>& streams, const std::vector<sim::Arrival>& arrivals,
                         const std::function<void(core::Scheduler&, core::TimeNs)>& now_and_then = {});
[[nodiscard]] sim::Outcomes simulate(const core::Topology& t, const core::Policy& policy,
                                     const std::vector<core::TimeNs>& times);

// 1000 cameras of two classes, a frame every 33 ms each, on 250 partitions, all on all or in so many groups.
[[nodiscard]] Cost cameras(const core::Policy& policy, std::uint32_t groups, std::size_t requests);

// Another plan of 400 partitions under 1000 streams that load it to 90 %: medians of 14 swaps, and the longest.
struct Swap {
  double prepare_ms = 0, replace_us = 0, replace_us_max = 0;
};
[[nodiscard]] Swap swap(const core::Policy& policy);

[[nodiscard]] Json look_ahead_cost(std::uint32_t streams, core::TimeNs length, std::int64_t repeats,
                                   std::uint64_t& in_core);

}  // namespace leat::bench
