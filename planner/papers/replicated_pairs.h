// PPipe's baseline DART-r on the pooled problem (its other one, NP, is solve_whole_models). Pure; any thread.
#pragma once

#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

// Replicates a pair. Every DNN gets `gpus` of each type (of the first two) and an equal part, rounded down, of
// what is left; as many pairs as it can form run the best plan of one GPU of each type in two stages, the rest whole
// models. `gpus`: [dnn][type], NP's own. Precondition: two types. Proves nothing: the certificate's upper_bound is 0.
PooledSolution solve_replicated_pairs(const PooledProblem& problem, std::vector<std::vector<std::uint32_t>> gpus);

// GPUs of each type every DNN of a plan takes, by the problem's own rounding: [dnn][type].
std::vector<std::vector<std::uint32_t>> gpus_taken(const PooledProblem& problem,
                                                   const std::vector<PooledDnnPlan>& plan);

}  // namespace leat::planner
