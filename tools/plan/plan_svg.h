// A plan as a picture: a row for each route, its pools as boxes with partitions, batch, latency and rate. Pure.
#pragma once

#include <string>

#include "planner/io/plan_io.h"

namespace leat::planner {

std::string plan_svg(const PlanFile& file);

}  // namespace leat::planner
