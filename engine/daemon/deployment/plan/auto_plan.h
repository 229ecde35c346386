// `plan = "auto"`: leatd asks leat-plan for a plan when it starts, as a child under a time limit, and does without
// where that ends in any other way: every partition then runs every module, as with no plan at all. By Leat's rules, so
// that partitions shared in time and running without a plan are among what leat-plan tries in the simulator.
//
// What the child is given is in planner_files.h. Where memory does not hold all models on every partition, there is no
// doing without: then stated rates that the host does not carry are planned for as far as it does, and what is too much
// is dropped as ever. Blocks the caller for the limit at most. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"

namespace leat::daemon {

inline constexpr std::chrono::milliseconds kSolverLimit{10'000};

enum class PlanNeed : std::uint8_t { gain, condition };

struct AutoPlan {
  planner::PlanFile file;
  std::string carried;  // one line where it is for less than the stated rates
};

// `deployment` as deploy() makes it without a plan; `solver` is leat-plan (planner::solver_path()). Error: one line,
// why there is no plan: a module nobody has measured, an SLO that cannot be met, a child that hung or died.
Result<AutoPlan> auto_plan(const Config& config, const Deployment& deployment, const std::string& solver,
                           std::chrono::milliseconds limit = kSolverLimit, PlanNeed need = PlanNeed::gain);

}  // namespace leat::daemon
