// Solves the pooled problem to proven optimality: enumeration with dominance pruning, bound by the relaxation, exact search
// upwards from there (pooled_search.h). Pure and deterministic; any thread.
#pragma once

#include <cstdint>

#include "planner/pooled_problem.h"

namespace leat::planner {

struct PooledEffort {
  std::uint64_t steps = 8'000'000;  // of the whole search; when they run out the best plan stands, with its gap
  bool share_gpus = true;             // pipelines of one DNN may share a GPU at the same stage (the problem as stated)
};

// Precondition: types and DNNs present, weights positive, profiles valid, max_stages in 1..kMostStages.
PooledSolution solve_pooled(const PooledProblem& problem, const PooledEffort& effort = {});

}  // namespace leat::planner
