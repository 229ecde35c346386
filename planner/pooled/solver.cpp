#include "planner/pooled/solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "planner/pooled/candidates.h"
#include "planner/pooled/lp.h"
#include "planner/pooled/packing.h"
#include "planner/pooled/search/branch_and_bound.h"

namespace leat::planner {
namespace {

std::uint32_t common_multiple_of_shares(const Slots& slots) {
  std::uint32_t multiple = 1;
  for (const auto& of_dnn : slots) {
    for (const Slot& s : of_dnn) {
      for (const Candidate& c : s.candidates) {
        for (std::uint32_t k = 0; k < c.stages; ++k) multiple = std::lcm(multiple, std::uint32_t{c.stage[k].share});
      }
    }
  }
  return multiple;
}

std::string binding_of(const PooledProblem& problem, const PooledLp& lp) {
  std::string out;
  for (std::size_t g = 0; g < problem.types.size(); ++g) {
    if (lp.gpu_price()[g] <= 0) continue;
    char text[96];
    std::snprintf(text, sizeof text, "%s%s (one more brings %.4g)", out.empty() ? "" : ", ",
                  problem.types[g].name.c_str(), lp.gpu_price()[g]);
    out += text;
  }
  return "partitions: " + out;
}

// False: a DNN fits no pipeline, and `out` says which.
bool enumerate(const PooledProblem& problem, Slots& slots, PooledSolution& out) {
  std::uint32_t largest_share = 1;
  for (const GpuType& t : problem.types) largest_share = std::max(largest_share, t.max_share);
  for (const PooledDnn& d : problem.dnns) {
    slots.push_back(enumerate_slots(problem, d, largest_share));
    if (!slots.back().empty()) continue;
    out.certificate.binding = "SLO of " + d.profile->model + ": no pipeline meets it";
    return false;
  }
  return true;
}

void certify(const PooledProblem& problem, const PooledLp& lp, const PooledTree& best,
             std::chrono::steady_clock::time_point start, PooledSolution& out) {
  out.feasible = best.reached > 0;
  out.dnns = best.plan;
  out.lp_bound = lp.bound();
  Certificate& c = out.certificate;
  const bool proven = best.bound <= best.reached * (1 + kProof);
  c.objective = out.feasible ? stated_objective(problem, out.dnns) : 0;
  c.upper_bound = proven ? c.objective : best.bound;
  c.gap = proven || best.bound <= 0 ? 0 : (best.bound - c.objective) / best.bound;
  c.binding = binding_of(problem, lp);
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t steps_of(const PooledEffort& effort, const PooledProblem& problem, bool free) {
  return effort.steps > 0 ? effort.steps : free || problem.types.size() > 2 ? 10 * kSteps : kSteps;
}

// Whether the plan's shares fit the GPUs one by one, not only in sum.
bool packs(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan) {
  for (std::uint32_t g = 0; g < problem.types.size(); ++g) {
    std::vector<std::uint32_t> shares;
    for (const PooledDnnPlan& d : plan) {
      for (const PooledPipeline& p : d.pipelines) {
        for (const PooledStage& s : p.stages) {
          if (s.type == g) shares.insert(shares.end(), s.vgpus, s.share);
        }
      }
    }
    if (!shares.empty() && pack_shares(shares, problem.types[g].count).empty()) return false;
  }
  return true;
}

}  // namespace

PooledSolution solve_pooled(const PooledProblem& problem, const PooledEffort& effort) {
  const auto start = std::chrono::steady_clock::now();
  PooledSolution out;
  Slots slots;
  if (!enumerate(problem, slots, out)) return out;
  const PooledLp lp = relax(problem, slots);
  PooledTree best(problem, {}, steps_of(effort, problem, false));
  Slots whole = slots;
  for (auto& of_dnn : whole) keep_best_for_whole_gpus(of_dnn);
  best.solve(std::move(whole));
  out.whole_gpu_objective = best.reached;
  const std::uint32_t unit = common_multiple_of_shares(slots);
  out.certificate.method = "exact search, whole GPUs";
  if (effort.share_gpus && unit > 1) {
    PooledTree shared(problem, {unit, false}, steps_of(effort, problem, false));
    shared.reached = best.reached;
    shared.plan = best.plan;
    shared.solve(std::move(slots));
    out.certificate.method = "exact search, GPUs shared in " + std::to_string(unit) + " parts";
    certify(problem, lp, shared, start, out);
  } else {
    certify(problem, lp, best, start, out);
  }
  return out;
}

PooledSolution solve_free(const PooledProblem& problem, const PooledEffort& effort) {
  const auto start = std::chrono::steady_clock::now();
  PooledSolution strict = solve_pooled(problem, effort);
  PooledProblem freer = problem;
  freer.max_stages = std::max(problem.max_stages, kFreeStages);
  PooledSolution out;
  Slots slots;
  if (!enumerate(freer, slots, out)) return out;
  for (auto& of_dnn : slots) {
    for (Slot& s : of_dnn) s.copies = std::min(kFreePipelines, static_cast<std::uint32_t>(s.candidates.size()));
  }
  const PooledLp lp = relax(freer, slots);
  const std::uint32_t unit = common_multiple_of_shares(slots);
  PooledTree best(freer, {unit, true}, steps_of(effort, problem, true));
  best.reached = strict.certificate.objective;
  best.plan = strict.dnns;
  Slots whole = slots;  // a first step that is quick: more stages, whole GPUs
  for (auto& of_dnn : whole) keep_best_for_whole_gpus(of_dnn);
  PooledTree first(freer, {1, true}, steps_of(effort, problem, false));
  first.reached = best.reached;
  first.solve(std::move(whole));
  if (first.reached > best.reached) best.reached = first.reached, best.plan = first.plan;
  best.solve(std::move(slots));
  if (!packs(freer, best.plan)) {  // only with shares below 1/4: their sum fits, they do not
    best.plan = strict.dnns;
    best.reached = strict.certificate.objective;
    best.bound = lp.bound();
  }
  out.whole_gpu_objective = strict.whole_gpu_objective;
  out.certificate.method = "exact search, shares packed in " + std::to_string(unit) + " parts";
  certify(freer, lp, best, start, out);
  return out;
}

double pooled_bound(const PooledProblem& problem) {
  PooledSolution ignored;
  Slots slots;
  return enumerate(problem, slots, ignored) ? relax(problem, slots).bound() : 0;
}

std::vector<double> pooled_prices(const PooledProblem& problem) {
  PooledProblem freer = problem;
  freer.max_stages = std::max(problem.max_stages, kFreeStages);
  PooledSolution ignored;
  Slots slots;
  if (!enumerate(freer, slots, ignored)) return {};
  return relax(freer, slots).gpu_price();
}

PooledProblem whole_models_only(const PooledProblem& problem) {
  PooledProblem whole = problem;
  whole.max_stages = 1;
  for (GpuType& t : whole.types) t.max_share = 1;
  return whole;
}

PooledSolution solve_whole_models(const PooledProblem& problem) { return solve_pooled(whole_models_only(problem)); }

}  // namespace leat::planner
