// Splits an application's usable latency over the modules of its DAG: along every path the budgets add up to no more
// than it. Pure; any thread.
#pragma once

#include <vector>

#include "planner/application.h"

namespace leat::planner {

// budget[m] = usable * need[m] / (longest sum of needs over the paths through m). Precondition: needs positive.
std::vector<double> split_by_need(const Application& application, const std::vector<double>& need, double usable);

// Longest sum of needs over all paths.
double longest_path(const Application& application, const std::vector<double>& need);

}  // namespace leat::planner
