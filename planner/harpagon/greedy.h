// The paper's own planner: a split of the objective (splitting.h), a schedule of each module within its part
// (harpagon.h), and what is left over given to the residual workloads. Leat's exact planner begins with its plan.
// Any thread: pure functions. Infeasible is a value: plan.feasible().
#pragma once

#include "planner/harpagon/exact.h"
#include "planner/harpagon/splitting.h"

namespace leat::planner {

enum class Reassign : std::uint8_t { none, one, all };  // to how many modules the rest of the objective goes

HarpagonPlan schedule_split(const HarpagonProblem& problem, const Split& split, const ModuleOptions& options,
                            Reassign reassign);

// Algorithms 1 and 2 without cost-direct.
HarpagonPlan plan_greedily(const HarpagonProblem& problem);

// Exact frontiers, exactly combined; the greedy plan is the first bound.
HarpagonPlan cheapest_plan(const HarpagonProblem& problem);

}  // namespace leat::planner
