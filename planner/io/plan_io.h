// Plans as JSON files (docs/guide/plans.md). A file carries the applications it was made for, so that the daemon, the
// simulator and the checker need nothing else. Any thread. Errors are one line: file, key, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "planner/application.h"
#include "planner/plan.h"

namespace leat::planner {

struct PlanFile {
  std::vector<Application> applications;
  Plan plan;
};

// `name` opens every error. What is read is valid: problem_of() is empty.
Result<PlanFile> parse_plan(std::string_view json, const std::string& name);
Result<PlanFile> read_plan(const std::string& path);
std::string plan_to_json(const PlanFile& file);
Status write_plan(const std::string& path, const PlanFile& file);

// Empty: every index, order and size holds (indexes in range, names unique, blocks contiguous, batches >= 1, latencies
// positive and present for every batch, budgets of the right shape). Otherwise one line naming the key. Says nothing
// about whether the plan is good or meets its SLOs: plan_checker.h.
std::string problem_of(const PlanFile& file);

}  // namespace leat::planner
