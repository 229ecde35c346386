// A pooled solution as a plan: pools of named partitions, routes, stage latencies for every batch. Any thread.
#pragma once

#include "planner/build/host_types.h"
#include "planner/io/plan_io.h"

namespace leat::planner {

// `problem.dnns`: applications in order, modules in order. Only partitions that hold a stage stand in the plan; devices
// that are cut give one partition for each share, named DEVICE/K of V.
PlanFile routes_of(const std::vector<Application>& applications, const Host& host, const HostTypes& types,
                   const PooledProblem& problem, const PooledSolution& solution);

}  // namespace leat::planner
