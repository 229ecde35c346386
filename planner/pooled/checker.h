// Re-derives every constraint of the pooled problem from the profiles, sharing no code with the solver. Tests check
// every plan with it, the stored reference plans among them. Any thread.
#pragma once

#include <string>
#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

struct PooledTolerance {
  double us = 1e-3;         // on latencies and budgets
  double gpus = 1e-6;       // on whole GPUs
  double rate = 1e-6;       // relative, on stated rates
  bool slots_known = true;  // stored plans do not say which slot: then only a fitting assignment is asked for
};

// Empty: the plan holds. Otherwise one line: which DNN, pipeline, stage, and by how much. `replicated`: the plan
// repeats a plan of one pair of GPUs (DART-r), whose slots and pools are counted once for each copy: neither is
// checked, GPU counts are summed unrounded.
std::string problem_of(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan,
                       const PooledTolerance& tolerance, bool replicated = false);

// By Leat's own rules (solve_free): up to kFreeStages stages, kFreePipelines pipelines of one sequence of types, and
// any shares may meet on a GPU. That they fit is shown by a packing, which is re-added here device by device.
std::string problem_of_free(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan,
                            const PooledTolerance& tolerance);

// min over DNNs of rate / weight, from the vGPU counts alone.
double objective_of(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan);

}  // namespace leat::planner
