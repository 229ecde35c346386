// The cheapest counts of each type that still reach z = 1 (weights: the rates to carry). Pure; any thread.
#pragma once

#include <functional>
#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

struct MinCost {
  bool found = false;
  double cost = 0;
  double bound = 0;         // no counts of a smaller cost carry the rates; equals cost when proven
  PooledSolution solution;  // within the counts that were found
};

// Count vectors in order of cost; most are ruled out by the prices of relaxations solved before. With more than 200 000
// vectors: one device at a time is taken away while the rest carries the rates, dearest first (found, not proven: bound
// 0).
MinCost find_min_cost(const PooledProblem& problem, const std::vector<double>& cost,
                      const std::function<PooledSolution(const PooledProblem&)>& solve);

}  // namespace leat::planner
