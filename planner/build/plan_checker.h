// Whether a plan keeps what it promises, re-derived from the profiles: latencies are the profiles', every path of every
// application fits its SLO, every route carries its rate, no device is given out twice, memory suffices. Any thread.
#pragma once

#include <string>
#include <vector>

#include "planner/io/plan_io.h"
#include "planner/profile.h"

namespace leat::planner {

// Empty: it holds. Otherwise one line: which application, route, stage or device, and by how much. `file` must be valid
// (plan_io's problem_of). Latencies are held at p99 for the planned batch plus transfers; waiting is what the plan's
// margin is for.
std::string broken_promise(const PlanFile& file, const std::vector<Profile>& profiles);

}  // namespace leat::planner
