// Solves the pooled problem: enumeration with dominance pruning, bound by the relaxation, exact search upwards from
// there (search.h). Pure and deterministic; any thread. Precondition of both: types and DNNs present, weights
// positive, profiles valid, max_stages in 1..kMostStages.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

inline constexpr std::uint64_t kSteps = 8'000'000;  // well below a second

struct PooledEffort {
  // Of each search; when they run out the best plan stands, with its gap. 0: kSteps with one or two types, ten times as
  // many with more, or for Leat's rules.
  std::uint64_t steps = 0;
  bool share_gpus = true;  // pipelines of one DNN may share a GPU at the same stage (the problem as stated)
};

// PPipe's problem exactly as problem.h states it.
PooledSolution solve_pooled(const PooledProblem& problem, const PooledEffort& effort = {});

// No partitions (PPipe's NP): every DNN whole on one GPU type after another, whole GPUs (D = 1, v = 1). Solved exactly.
PooledProblem whole_models_only(const PooledProblem& problem);
PooledSolution solve_whole_models(const PooledProblem& problem);

// Leat's own rules: up to kFreeStages stages (or the problem's D, if more), up to kFreePipelines pipelines of one
// sequence of types, and any shares may meet on a GPU as long as they fit it (packing.h) - routes of all DNNs and all
// stages together. Everything the stricter rules allow is allowed here, and the search starts from their plan: never
// below solve_pooled.
inline constexpr std::uint32_t kFreeStages = 3;
inline constexpr std::uint32_t kFreePipelines = 3;
PooledSolution solve_free(const PooledProblem& problem, const PooledEffort& effort = {});

// The relaxation alone, by the stricter rules: no plan has a larger z; 0 where a DNN fits no pipeline. A tenth of the
// search's time.
double pooled_bound(const PooledProblem& problem);
// Its price of one GPU of each type (sum of price * count = bound; any other counts are worth no more than theirs);
// empty: no plan. Of the freer rules' relaxation, so that it bounds both.
std::vector<double> pooled_prices(const PooledProblem& problem);

}  // namespace leat::planner
