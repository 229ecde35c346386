// A plan tried by the daemon's own core before it is written: of several ways to plan the one that carries most in the
// simulator, its promise lowered to what is kept there.
#pragma once

#include <cstdint>

#include "planner/build/build_plan.h"

namespace leat::planner {

struct Trial {
  bool tried = false;       // false: too large, or nothing to try
  double promised = 1;      // in time at the promise, of the application that fares worst
  double kept = 1;          // the part of the promise at which 99 % are in time; up to 1
  double max = 1;           // the same, also above the promise
  std::uint32_t plans = 0;  // that were tried
};

// For the goal of throughput. Replaces outcome.file by the best of it and outcome.others, lowers its rates where they
// are not kept, and says so in the certificate. `requests` of each simulation; 0: nothing is tried.
Trial try_plan(const PlanRequest& request, PlanOutcome& outcome, std::uint64_t requests);

}  // namespace leat::planner
