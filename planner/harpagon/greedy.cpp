#include "planner/harpagon/greedy.h"

#include "planner/dag.h"

namespace leat::planner {
namespace {

// Section III-C: what the longest path leaves over goes to the residual workload of the module that saves most, again
// and again.
void give_rest(Reassign reassign, const ModuleOptions& options, const HarpagonProblem& problem, HarpagonPlan& plan) {
  const auto after = predecessors(problem);
  for (std::size_t round = 0; reassign != Reassign::none && round < 4 * problem.modules.size(); ++round) {
    std::vector<double> latency;
    for (const ModuleSchedule& s : plan.modules) latency.push_back(s.latency_s);
    const std::vector<double> through = longest_paths_through(after, latency);
    ModuleSchedule best;
    std::size_t where = 0;
    double saving = 0;
    for (std::size_t m = 0; m < plan.modules.size(); ++m) {
      const HarpagonModule& module = problem.modules[m];
      const double budget = problem.slo_s - through[m] + latency[m];
      ModuleSchedule s = reassign_residual(module.configurations, plan.modules[m], module.rate_rps, budget, options);
      if (plan.modules[m].cost - s.cost <= saving) continue;
      saving = plan.modules[m].cost - s.cost;
      best = std::move(s);
      where = m;
    }
    if (saving <= kRelative * plan.cost) break;
    plan.modules[where] = std::move(best);
    if (reassign == Reassign::one) break;
  }
}

}  // namespace

HarpagonPlan schedule_split(const HarpagonProblem& problem, const Split& split, const ModuleOptions& options,
                            Reassign reassign) {
  HarpagonPlan plan;
  if (split.budget_s.empty()) return plan;
  for (std::size_t m = 0; m < problem.modules.size(); ++m) {
    plan.modules.push_back(
        schedule_module(problem.modules[m].configurations, problem.modules[m].rate_rps, split.budget_s[m], options));
    if (!plan.modules.back().feasible()) return {};
  }
  plan.iterations = split.iterations;
  evaluate(problem, plan);
  give_rest(reassign, options, problem, plan);
  evaluate(problem, plan);
  return plan;
}

HarpagonPlan plan_greedily(const HarpagonProblem& problem) {
  for (const HarpagonModule& m : problem.modules)
    if (m.configurations.empty()) return {};
  return schedule_split(problem, split_latency(problem, {}), {}, Reassign::all);
}

HarpagonPlan cheapest_plan(const HarpagonProblem& problem) { return solve_exactly(problem, plan_greedily(problem)); }

}  // namespace leat::planner
