// The naive twin of the pooled solver, for tests: plain dynamic programming over the parts of every pool, whole plan
// spaces, no bound, no pruning. Only for a few GPUs, few blocks and D = 2.
#pragma once

#include "planner/pooled/problem.h"

namespace leat::planner {

double twin_optimum(const PooledProblem& problem, std::uint32_t unit);

}  // namespace leat::planner
