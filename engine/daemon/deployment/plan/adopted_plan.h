// A plan of a file, or of leat-plan, made this host's: its applications, modules and partitions are found by name, and
// what this host or this engine has not is refused. Pure. Errors are one line that says what to do.
#pragma once

#include <span>

#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"

namespace leat::daemon {

// Fills in Deployment::plan, edges and planned. `pairs`: of the devices that features pass between.
Status adopt_plan(const Config& config, const planner::PlanFile& file, std::span<const DevicePair> pairs,
                  Deployment& deployment);

}  // namespace leat::daemon
