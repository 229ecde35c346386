#include "planner/papers/replicated_pairs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/pooled/solver.h"

namespace leat::planner {

std::vector<std::vector<std::uint32_t>> gpus_taken(const PooledProblem& problem,
                                                   const std::vector<PooledDnnPlan>& plan) {
  std::vector<std::vector<std::uint32_t>> out;
  for (const PooledDnnPlan& d : plan) {
    std::map<std::pair<std::size_t, std::uint32_t>, double> pools;
    for (const PooledPipeline& p : d.pipelines) {
      for (std::size_t s = 0; s < p.stages.size(); ++s) {
        pools[{s, p.stages[s].type}] += static_cast<double>(p.stages[s].vgpus) / p.stages[s].share;
      }
    }
    out.emplace_back(problem.types.size(), 0u);
    for (const auto& [pool, gpus] : pools)
      out.back()[pool.second] += static_cast<std::uint32_t>(std::ceil(gpus - 1e-9));
  }
  return out;
}

namespace {

// One DNN alone on these many GPUs of each type.
PooledDnnPlan alone(const PooledProblem& problem, std::size_t dnn, std::vector<std::uint32_t> counts,
                    std::uint32_t stages) {
  PooledProblem small = problem;
  small.dnns = {problem.dnns[dnn]};
  small.max_stages = stages;
  small.types.clear();
  std::vector<std::uint32_t> original;
  for (std::uint32_t g = 0; g < counts.size(); ++g) {
    if (counts[g] == 0) continue;
    small.types.push_back(problem.types[g]);
    small.types.back().count = counts[g];
    small.types.back().max_share = 1;
    original.push_back(g);
  }
  PooledSolution s = solve_pooled(small);
  if (!s.feasible) return {};
  for (PooledPipeline& p : s.dnns[0].pipelines) {
    for (PooledStage& stage : p.stages) stage.type = original[stage.type];
  }
  return s.dnns[0];
}

void add_times(PooledDnnPlan& to, const PooledDnnPlan& what, std::uint32_t times) {
  for (PooledPipeline p : what.pipelines) {
    p.rps *= times;
    for (PooledStage& s : p.stages) s.vgpus *= times;
    to.rps += p.rps;
    to.pipelines.push_back(std::move(p));
  }
}

}  // namespace

PooledSolution solve_replicated_pairs(const PooledProblem& problem, std::vector<std::vector<std::uint32_t>> gpus) {
  PooledSolution out;
  const auto dnns = static_cast<std::uint32_t>(problem.dnns.size());
  for (std::size_t g = 0; g < problem.types.size(); ++g) {
    std::uint32_t taken = 0;
    for (const auto& of_dnn : gpus) taken += of_dnn[g];
    const std::uint32_t extra = problem.types[g].count > taken ? (problem.types[g].count - taken) / dnns : 0;
    for (auto& of_dnn : gpus) of_dnn[g] += extra;
  }
  double z = INFINITY;
  for (std::size_t i = 0; i < dnns; ++i) {
    const std::uint32_t pairs = std::min(gpus[i][0], gpus[i][1]);
    const std::uint32_t more = gpus[i][0] > gpus[i][1] ? 0 : 1;
    std::vector<std::uint32_t> single(2, 0);
    single[more] = 1;
    PooledDnnPlan plan;
    if (pairs > 0) add_times(plan, alone(problem, i, {1, 1}, 2), pairs);
    if (gpus[i][more] > pairs) add_times(plan, alone(problem, i, single, 1), gpus[i][more] - pairs);
    z = std::min(z, plan.rps / problem.dnns[i].weight);
    out.dnns.push_back(std::move(plan));
  }
  out.feasible = z > 0;
  out.certificate.objective = z;
  out.certificate.method = "replicated pairs (no bound)";
  return out;
}

}  // namespace leat::planner
