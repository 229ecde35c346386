#include "engine/daemon/deployment/plan/auto_plan.h"

#include "engine/daemon/deployment/plan/planner_files.h"
#include "planner/child/solver_process.h"

namespace leat::daemon {

Result<planner::PlanFile> auto_plan(const Config& config, const Deployment& deployment, const std::string& solver,
                                    std::chrono::milliseconds limit) {
  const PlannerFolder folder;
  if (const Status written = folder.write(config, deployment); !written) return Error{written.error()};
  const std::string plan = folder.path() + "/plan.json";
  const planner::SolverRun run = planner::run_solver(folder.words(solver, plan), limit);
  if (run.end != planner::SolverRun::End::done) return Error{run.message};
  return planner::read_plan(plan);
}

}  // namespace leat::daemon
