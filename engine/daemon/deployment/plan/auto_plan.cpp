#include "engine/daemon/deployment/plan/auto_plan.h"

#include <utility>

#include "engine/daemon/deployment/plan/planner_files.h"
#include "planner/child/solver_process.h"

namespace leat::daemon {

Result<AutoPlan> auto_plan(const Config& config, const Deployment& deployment, const std::string& solver,
                           std::chrono::milliseconds limit, PlanNeed need) {
  const PlannerFolder folder;
  if (const Status written = folder.write(config, deployment); !written) return Error{written.error()};
  const std::string plan = folder.path() + "/plan.json";
  auto words = folder.words(solver, plan);
  if (need == PlanNeed::condition) words.emplace_back("--nearest");
  const planner::SolverRun run = planner::run_solver(words, limit);
  if (run.end != planner::SolverRun::End::done) return Error{run.message};
  auto file = planner::read_plan(plan);
  if (!file.ok()) return Error{file.error()};
  AutoPlan out{.file = std::move(*file), .carried = {}};
  if (run.output.starts_with("the host carries")) out.carried = run.output.substr(0, run.output.find('\n'));
  return out;
}

}  // namespace leat::daemon
