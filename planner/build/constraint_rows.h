// A user's constraints in the words of the pooled problem: limits of memory on the host, linear rows over its
// variables. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "planner/build/host_types.h"
#include "planner/constraints.h"
#include "planner/pooled/milp.h"

namespace leat::planner {

// Lowers memory_bytes. Error: a partition or class that the host has not.
Status limit_memory(const PlanConstraints& constraints, Host& host);

// `profiles[d]`, and the applications' modules in order, are the problem's DNNs; its types are `types`. Error: a name
// that nothing has.
Result<std::vector<MilpRow>> rows_of(const PlanConstraints& constraints, const std::vector<Application>& applications,
                                     const HostTypes& types);

}  // namespace leat::planner
