#include "planner/papers/harpagon_systems.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/dag.h"
#include "planner/harpagon/greedy.h"

namespace leat::planner {
namespace {

constexpr std::uint32_t kMaxReversed =
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

ModuleOptions options_of(const HarpagonSystem& system) { return {system.dispatch, system.tuples, system.dummies}; }

// Every module on a longest path through it gets the same share.
Split split_evenly(const HarpagonProblem& problem) {
  Split split;
  const std::vector<double> hops =
      longest_paths_through(predecessors(problem), std::vector<double>(problem.modules.size(), 1.0));
  for (const double h : hops) split.budget_s.push_back(problem.slo_s / h);
  return split;
}

// Leaves only configurations that `keep` accepts.
template <class Keep>
HarpagonProblem filtered(const HarpagonProblem& problem, Keep keep) {
  HarpagonProblem out = problem;
  for (HarpagonModule& m : out.modules)
    std::erase_if(m.configurations, [&](const Configuration& c) { return !keep(m, c); });
  return out;
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
  const ModuleOptions options = options_of(system);
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
      return schedule_split(problem, split_evenly(problem), options_of(system), system.reassign);
    case Splitter::quantised:
    case Splitter::configurations:
      return schedule_split(problem, split_by_candidates(system, problem), options_of(system), system.reassign);
    case Splitter::exact:
      return cheapest_plan(problem);
    case Splitter::latency_cost:
    case Splitter::throughput:
      break;
  }
  SplitOptions options;
  options.rule = system.splitter == Splitter::throughput ? SplitRule::throughput : SplitRule::latency_cost;
  options.dispatch = system.dispatch;
  options.merge_nodes = system.merge_nodes;
  HarpagonPlan best;
  for (std::uint32_t reversed = 0; reversed <= (system.cost_direct ? kMaxReversed : 0); ++reversed) {
    options.reversed = reversed;
    HarpagonPlan plan = schedule_split(problem, split_latency(problem, options), options_of(system), system.reassign);
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
