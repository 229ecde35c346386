#include "planner/harpagon/system.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/dag.h"
#include "planner/harpagon/splitting.h"

namespace leat::planner {
namespace {

constexpr std::uint32_t kMostReversed =
    3;  // cost-direct's R: 0 to 3 last moves are chosen again by cost, the cheapest plan is kept
constexpr double kNexusInterval = 0.05;  // seconds; the paper does not say which interval it gave Nexus

// clang-format off
constexpr HarpagonSystem kSystems[] = {
    {.name = "harpagon", .text = "the paper's planner", .paper_extra_cost = 0},
    {.name = "nexus", .text = "2d, two configurations, one kind of hardware, intervals of 50 ms", .dispatch = Dispatch::round_robin, .tuples = 2,
     .hardware = Hardware::one_kind, .dummies = false, .reassign = Reassign::none, .splitter = Splitter::quantised, .interval_s = kNexusInterval},
    {.name = "scrooge", .text = "d + b/t, two configurations, split by throughput", .dispatch = Dispatch::per_tuple, .tuples = 2, .dummies = false,
     .reassign = Reassign::none, .splitter = Splitter::throughput, .merge_nodes = false, .cost_direct = false},
    {.name = "inferline", .text = "2d, one configuration, split by throughput", .dispatch = Dispatch::round_robin, .tuples = 1, .dummies = false,
     .reassign = Reassign::none, .splitter = Splitter::throughput, .merge_nodes = false, .cost_direct = false},
    {.name = "clipper", .text = "2d, one configuration, one kind of hardware, split evenly", .dispatch = Dispatch::round_robin, .tuples = 1,
     .hardware = Hardware::one_kind, .dummies = false, .reassign = Reassign::none, .splitter = Splitter::even},
    {.name = "harp-2d", .text = "requests dispatched one by one: 2d", .dispatch = Dispatch::round_robin, .paper_extra_cost = 0.796},
    {.name = "harp-dt", .text = "each configuration collects from its own share", .dispatch = Dispatch::per_tuple, .paper_extra_cost = 0.441},
    {.name = "harp-1c", .text = "one configuration a module", .tuples = 1, .paper_extra_cost = 0.665},
    {.name = "harp-2c", .text = "two configurations a module", .tuples = 2, .paper_extra_cost = 0.030},
    {.name = "harp-nb", .text = "no batching", .batching = false, .paper_extra_cost = 0.896},
    {.name = "harp-nhc", .text = "cheapest hardware only", .hardware = Hardware::cheapest, .paper_extra_cost = 0.232},
    {.name = "harp-nhe", .text = "dearest hardware only", .hardware = Hardware::dearest, .paper_extra_cost = 0.140},
    {.name = "harp-nd", .text = "no dummy requests", .dummies = false, .paper_extra_cost = 0.008},
    {.name = "harp-0re", .text = "no latency reassignment", .reassign = Reassign::none, .paper_extra_cost = 0.010},
    {.name = "harp-1re", .text = "latency reassigned to one module", .reassign = Reassign::one, .paper_extra_cost = 0.006},
    {.name = "harp-tb", .text = "split by throughput", .splitter = Splitter::throughput, .paper_extra_cost = 0.353},
    {.name = "harp-q0.01", .text = "split in intervals of 10 ms", .splitter = Splitter::quantised, .interval_s = 0.01, .paper_extra_cost = 0.012},
    {.name = "harp-q0.1", .text = "split in intervals of 100 ms", .splitter = Splitter::quantised, .interval_s = 0.1, .paper_extra_cost = 0.306},
    {.name = "harp-nnm", .text = "no node merger", .merge_nodes = false, .paper_extra_cost = 0.002},
    {.name = "harp-ncd", .text = "no cost-direct", .cost_direct = false, .paper_extra_cost = 0.003},
    {.name = "harp-split", .text = "the best of all splits that Algorithm 2 may end in", .splitter = Splitter::configurations},
    {.name = "leat", .text = "exact frontiers, exactly combined; the paper's greedy is the first bound", .splitter = Splitter::exact},
};
// clang-format on

std::vector<std::vector<std::uint32_t>> predecessors(const HarpagonProblem& problem) {
  std::vector<std::vector<std::uint32_t>> after;
  for (const HarpagonModule& m : problem.modules) after.push_back(m.after);
  return after;
}

// Leaves only configurations that `keep` accepts.
template <class Keep>
HarpagonProblem filtered(const HarpagonProblem& problem, Keep keep) {
  HarpagonProblem out = problem;
  for (HarpagonModule& m : out.modules)
    std::erase_if(m.configurations, [&](const Configuration& c) { return !keep(m, c); });
  return out;
}

// Section III-C: what the longest path leaves over goes to the residual workload of the module that saves most, again
// and again.
void reassign(const HarpagonSystem& system, const ModuleOptions& options, const HarpagonProblem& problem,
              HarpagonPlan& plan) {
  const auto after = predecessors(problem);
  for (std::size_t round = 0; system.reassign != Reassign::none && round < 4 * problem.modules.size(); ++round) {
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
    if (system.reassign == Reassign::one) break;
  }
}

HarpagonPlan schedule_split(const HarpagonSystem& system, const HarpagonProblem& problem, const Split& split) {
  HarpagonPlan plan;
  if (split.budget_s.empty()) return plan;
  const ModuleOptions options{system.dispatch, system.tuples, system.dummies};
  for (std::size_t m = 0; m < problem.modules.size(); ++m) {
    plan.modules.push_back(
        schedule_module(problem.modules[m].configurations, problem.modules[m].rate_rps, split.budget_s[m], options));
    if (!plan.modules.back().feasible()) return {};
  }
  plan.iterations = split.iterations;
  evaluate(problem, plan);
  reassign(system, options, problem, plan);
  evaluate(problem, plan);
  return plan;
}

// The budgets among which a module's may be chosen. Nexus: whole numbers of intervals.
std::vector<double> candidate_budgets_s(const HarpagonSystem& system, const HarpagonModule& module, double slo_s) {
  std::vector<double> out;
  if (system.splitter == Splitter::quantised)
    for (int i = 1; i * system.interval_s <= slo_s * (1 + kRelative); ++i) out.push_back(i * system.interval_s);
  else
    for (const Configuration& c : module.configurations)
      out.push_back(worst_case_latency_s(system.dispatch, c, module.rate_rps));
  return out;
}

// The cheapest of all combinations of candidate budgets.
Split split_by_candidates(const HarpagonSystem& system, const HarpagonProblem& problem) {
  const ModuleOptions options{system.dispatch, system.tuples, system.dummies};
  std::vector<Frontier> frontiers(problem.modules.size());
  for (std::size_t m = 0; m < problem.modules.size(); ++m)
    for (double budget : candidate_budgets_s(system, problem.modules[m], problem.slo_s)) {
      const ModuleSchedule s =
          schedule_module(problem.modules[m].configurations, problem.modules[m].rate_rps, budget, options);
      if (s.feasible()) frontiers[m].add(budget, s.cost, 0);
    }
  Split split;
  const auto chosen = cheapest_combination(frontiers, predecessors(problem), problem.slo_s, kNoPlan);
  for (std::size_t m = 0; m < chosen.size(); ++m) split.budget_s.push_back(frontiers[m].points()[chosen[m]].latency_s);
  return split;
}

HarpagonPlan plan_on(const HarpagonSystem& system, const HarpagonProblem& problem) {
  for (const HarpagonModule& m : problem.modules)
    if (m.configurations.empty()) return {};
  switch (system.splitter) {
    case Splitter::even:
      return schedule_split(system, problem, split_evenly(problem));
    case Splitter::quantised:
    case Splitter::configurations:
      return schedule_split(system, problem, split_by_candidates(system, problem));
    case Splitter::exact:
      return solve_exactly(problem, plan_with(*find_harpagon_system("harp-ncd"), problem));
    case Splitter::latency_cost:
    case Splitter::throughput:
      break;
  }
  SplitOptions options;
  options.rule = system.splitter == Splitter::throughput ? SplitRule::throughput : SplitRule::latency_cost;
  options.dispatch = system.dispatch;
  options.merge_nodes = system.merge_nodes;
  HarpagonPlan best;
  for (std::uint32_t reversed = 0; reversed <= (system.cost_direct ? kMostReversed : 0); ++reversed) {
    options.reversed = reversed;
    HarpagonPlan plan = schedule_split(system, problem, split_latency(problem, options));
    if (plan.cost < best.cost) best = std::move(plan);
  }
  return best;
}

double extreme_price(const HarpagonModule& m, bool cheapest) {
  double price = m.configurations[0].price;
  for (const Configuration& c : m.configurations)
    price = cheapest ? std::min(price, c.price) : std::max(price, c.price);
  return price;
}

}  // namespace

std::span<const HarpagonSystem> harpagon_systems() { return kSystems; }

const HarpagonSystem* find_harpagon_system(std::string_view name) {
  for (const HarpagonSystem& s : kSystems)
    if (s.name == name) return &s;
  return nullptr;
}

HarpagonPlan plan_with(const HarpagonSystem& system, const HarpagonProblem& given) {
  const bool plain = system.batching && system.hardware == Hardware::any;
  if (plain) return plan_on(system, given);
  const HarpagonProblem problem =
      system.batching ? given : filtered(given, [](const HarpagonModule& m, const Configuration& c) {
        return std::none_of(m.configurations.begin(), m.configurations.end(),
                            [&](const Configuration& o) { return o.batch < c.batch; });
      });
  if (system.hardware == Hardware::any) return plan_on(system, problem);
  if (system.hardware != Hardware::one_kind)
    return plan_on(system, filtered(problem, [&](const HarpagonModule& m, const Configuration& c) {
                     return c.price == extreme_price(m, system.hardware == Hardware::cheapest);
                   }));
  std::set<std::uint32_t> kinds;
  for (const HarpagonModule& m : problem.modules)
    for (const Configuration& c : m.configurations) kinds.insert(c.hardware);
  HarpagonPlan best;
  for (std::uint32_t kind : kinds) {
    HarpagonPlan plan = plan_on(
        system, filtered(problem, [&](const HarpagonModule&, const Configuration& c) { return c.hardware == kind; }));
    if (plan.cost < best.cost) best = std::move(plan);
  }
  return best;
}

}  // namespace leat::planner
