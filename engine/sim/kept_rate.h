// How much of what a plan promises the daemon's own core keeps: the largest part of all rates at which nearly every
// request of every application is in time, Poisson arrivals, run times as the plan says. Thread rule: pure.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/model/topology.h"
#include "engine/core/policy/policy.h"

namespace leat::sim {

struct KeptRateOptions {
  double in_time = .99;            // of every application's requests
  std::uint64_t requests = 20000;  // of one simulation, about
  double max = 1;                  // parts above are not tried; 1 or more
  double resolution = .01;         // of the part
  std::uint64_t seed = 1;          // the same draws at every rate, so that more load is never luckier
};

struct KeptRate {
  double part = 0;     // 0: not even a hundredth is kept
  double in_time = 0;  // at part 1, of the application that fares worst
};

// rates_rps: [application], at part 1; an application without a rate is left out.
[[nodiscard]] KeptRate kept_rate(const core::Topology& topology, const core::Policy& policy,
                                 std::span<const double> rates_rps, const KeptRateOptions& options = {});

// In time at one rate: the share of the application that fares worst.
[[nodiscard]] double worst_in_time(const core::Topology& topology, const core::Policy& policy,
                                   std::span<const double> rates_rps, double part, const KeptRateOptions& options = {});

}  // namespace leat::sim
