// The pooled problem with whole GPUs as a mixed integer program for GLPK, to measure our search against. Only leat-plan
// links it: GLPK aborts the process on misuse, and is GPLv3.
#pragma once

#include "planner/pooled/problem.h"

namespace leat::planner {

struct GlpkAnswer {
  double objective = 0;  // of the incumbent; 0: none
  double bound = 0;      // best bound left when it stopped
  double lp_bound = 0;   // of the relaxation
  double seconds = 0;
};

// Counts of whole GPUs for each candidate and stage (layout counts), Gomory and MIR cuts together, presolve, and
// `limit_ms`: the incumbent at the limit is accepted. The problem must have a pipeline for every DNN.
GlpkAnswer solve_with_glpk(const PooledProblem& problem, int limit_ms);

}  // namespace leat::planner
