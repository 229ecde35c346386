// The optimum by enumeration, to check harpagon_exact and to stand beside it: same space, none of its bounds.
// Slow (milliseconds to seconds a workload). Any thread.
#pragma once

#include "planner/harpagon/exact.h"

namespace leat::planner {

// Enumerates, for each module, the schedules of the space by rising budget: for every worst case that can bind, the
// cheapest schedule within it; then every combination that keeps the objective, cut only where its cost already exceeds
// the best.
HarpagonPlan brute_force(const HarpagonProblem& problem);

// Every schedule of one module, no pruning at all: for small rates and few configurations.
Frontier every_schedule(std::span<const Configuration> configurations, double rate_rps);

}  // namespace leat::planner
