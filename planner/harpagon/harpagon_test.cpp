// Harpagon's worked examples (sections II and III), exactly, and the exact planner against plain enumeration.
#include "planner/harpagon/harpagon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/dag.h"
#include "planner/harpagon/greedy.h"
#include "planner/test/harpagon_brute.h"
#include "planner/test/harpagon_workloads.h"
#include "planner/test/uniform.h"

namespace leat::planner {
namespace {

std::vector<Configuration> in_order(std::vector<Configuration> c) {
  order_by_ratio(c);
  return c;
}
// Table I.
const std::vector<Configuration> kM1 = in_order({{2, 0.160, 1, 0}, {4, 0.200, 1, 0}, {8, 0.320, 1, 0}});
const std::vector<Configuration> kM3 = in_order({{2, 0.100, 1, 0}, {8, 0.250, 1, 0}, {32, 0.800, 1, 0}});

TEST(HarpagonExamples, OneDispatchPolicyNeedsFiveMachinesTheOtherFour) {
  const double round_robin[] = {0.64, 0.40, 0.32}, batches[] = {0.40, 0.24, 0.18};  // batch 8, 4, 2
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(worst_case_latency_s(Dispatch::round_robin, kM1[i], 100), round_robin[i], 1e-12);
    EXPECT_NEAR(worst_case_latency_s(Dispatch::throughput_cost, kM1[i], 100), batches[i], 1e-12);
  }
  const ModuleSchedule rr = schedule_module(kM1, 100, 0.4, {Dispatch::round_robin, 1, false});
  ASSERT_EQ(rr.tuples.size(), 1u);
  EXPECT_EQ(rr.tuples[0].configuration.batch, 4u);
  EXPECT_NEAR(rr.cost, 5.0, 1e-9);
  const ModuleSchedule tc = schedule_module(kM1, 100, 0.4, {Dispatch::throughput_cost, 1, false});
  ASSERT_EQ(tc.tuples.size(), 1u);
  EXPECT_EQ(tc.tuples[0].configuration.batch, 8u);
  EXPECT_NEAR(tc.cost, 4.0, 1e-9);
}

void expect_tuples(const ModuleSchedule& s, std::vector<std::pair<double, std::uint32_t>> expected, double cost) {
  ASSERT_EQ(s.tuples.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(s.tuples[i].machines, expected[i].first, 1e-9);
    EXPECT_EQ(s.tuples[i].configuration.batch, expected[i].second);
  }
  EXPECT_NEAR(s.cost, cost, 1e-9);
  EXPECT_LE(s.latency_s, 1.0 + 1e-9);
}

TEST(HarpagonExamples, FourSchedulesOfOneModule) {  // Table II
  expect_tuples(schedule_module(kM3, 198, 1.0, {Dispatch::round_robin, 2, false}), {{6.0, 8}, {0.3, 2}}, 6.3);
  expect_tuples(schedule_module(kM3, 198, 1.0, {Dispatch::throughput_cost, 2, false}), {{4.0, 32}, {1.9, 2}}, 5.9);
  expect_tuples(schedule_module(kM3, 198, 1.0, {Dispatch::throughput_cost, 0, false}), {{4.0, 32}, {1.0, 8}, {0.3, 2}},
                5.3);
  const ModuleSchedule dummies = schedule_module(kM3, 198, 1.0, {Dispatch::throughput_cost, 0, true});
  expect_tuples(dummies, {{5.0, 32}}, 5.0);
  EXPECT_NEAR(dummies.dummy_rps, 2.0, 1e-9);
}

TEST(HarpagonExamples, WorstCaseOfMixedMachines) {  // figure 4
  const Configuration a{6, 2.0, 1, 0}, c{2, 1.0, 1, 0};
  EXPECT_NEAR(a.throughput_rps() / a.price, 3.0, 1e-12);
  EXPECT_NEAR(c.throughput_rps() / c.price, 2.0, 1e-12);
  ModuleSchedule s;
  s.tuples = {{a, 2}, {c, 1}};
  evaluate(Dispatch::throughput_cost, s);
  EXPECT_NEAR(s.latency_s, 2.75, 1e-12);  // 0.75 s collecting at the remaining workload of 8
  EXPECT_NEAR(worst_case_latency_s(Dispatch::throughput_cost, a, 8) - a.duration_s, 0.75, 1e-12);
  EXPECT_NEAR(worst_case_latency_s(Dispatch::throughput_cost, c, 2), 2.0, 1e-12);
  // One by one, A and B take the first twelve requests in turn: A's sixth is the eleventh, 11 / 8 s of collecting.
  int sixth = 0;
  for (int request = 1, of_a = 0; of_a < 6; ++request)
    if (request % 2 == 1 && ++of_a == 6) sixth = request;
  EXPECT_NEAR(sixth / 8.0, 1.375, 1e-12);
  EXPECT_NEAR(a.duration_s + sixth / 8.0, 3.375, 1e-12);
}

TEST(HarpagonExamples, LatencyCostEfficiency) {
  const Configuration &two = kM1[2], &four = kM1[1], &eight = kM1[0];
  EXPECT_NEAR(latency_cost_efficiency(Dispatch::throughput_cost, 100, two, four), 50.0, 1e-9);
  EXPECT_NEAR(latency_cost_efficiency(Dispatch::throughput_cost, 100, two, eight), 18.1818, 1e-3);
}

// Three modules whose one move takes the same latency and has efficiencies 20, 10, 15; y and z hang on x.
TEST(HarpagonExamples, NodeMergerTakesThePairFirst) {
  HarpagonProblem p;
  p.slo_s = 2.35;
  const double efficiency[] = {20, 10, 15};
  for (int m = 0; m < 3; ++m) {
    const double rate = 1000, added = 0.1 - 1 / rate;  // worst cases 1.001 and 1.101, so 0.1 s apart
    HarpagonModule module;
    module.name = std::string(1, "xyz"[m]);
    module.rate_rps = rate;
    if (m > 0) module.after = {0};
    const Configuration from{1, 1.0, 1, 0};
    const double cost = rate * from.cost_per_request() - efficiency[m] * 0.1;
    const double duration = 1.0 + added;  // batch 2 collects for 0.002 s
    module.configurations = {from, {2, duration, cost / rate * 2 / duration, 1}};
    order_by_ratio(module.configurations);
    p.modules.push_back(module);
  }
  std::vector<std::uint32_t> now;
  for (const HarpagonModule& m : p.modules) now.push_back(m.configurations[0].batch == 1 ? 0 : 1);
  SplitOptions options;
  const Move merged = best_move(p, now, options, false);
  EXPECT_EQ(merged.modules, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_NEAR(merged.efficiency, 25.0, 1e-6);
  options.merge_nodes = false;
  const Move single = best_move(p, now, options, false);
  EXPECT_EQ(single.modules, (std::vector<std::uint32_t>{0}));
  EXPECT_NEAR(single.efficiency, 20.0, 1e-6);
}

// Cost-direct: 0.01 s at efficiency 20 against 0.1 s at 10; only one fits, and the second saves more.
TEST(HarpagonExamples, CostDirectTakesTheLargerSaving) {
  HarpagonProblem p;
  p.slo_s = 2.11;
  const double added[] = {0.01, 0.1}, efficiency[] = {20, 10};
  for (int m = 0; m < 2; ++m) {
    HarpagonModule module;
    module.rate_rps = 1000;
    if (m > 0) module.after = {0};
    const double duration = 1.0 + added[m] - 0.001, cost = 1000.0 - efficiency[m] * added[m];
    module.configurations = {{1, 1.0, 1, 0}, {2, duration, cost / 1000 * 2 / duration, 1}};
    order_by_ratio(module.configurations);
    p.modules.push_back(module);
  }
  p.slo_s = 1.001 * 2 + 0.1;
  std::vector<std::uint32_t> now;
  for (const HarpagonModule& m : p.modules) now.push_back(m.configurations[0].batch == 1 ? 0 : 1);
  EXPECT_EQ(best_move(p, now, {}, false).modules, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(best_move(p, now, {}, true).modules, (std::vector<std::uint32_t>{1}));
}

// ---- the exact planner ----

HarpagonProblem small_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HarpagonProblem problem;
  const std::uint32_t count = 1 + random() % 4;
  for (std::uint32_t m = 0; m < count; ++m) {
    HarpagonModule module;
    module.rate_rps = std::round(uniform(random, 3, 40));
    const std::uint32_t configurations = 2 + random() % 4;
    for (std::uint32_t i = 0; i < configurations; ++i) {
      const std::uint32_t batch = 1u << (random() % 5), hardware = random() % 2;
      const double duration = uniform(random, 0.05, 0.15) + batch * uniform(random, 0.02, 0.06);
      module.configurations.push_back({batch, duration, hardware == 0 ? 1.0 : 1.7, hardware});
    }
    order_by_ratio(module.configurations);
    for (std::uint32_t p = 0; p < m; ++p)
      if (random() % 2 == 0) module.after.push_back(p);
    problem.modules.push_back(std::move(module));
  }
  problem.slo_s = uniform(random, 0.3, 1.2) * count;
  return problem;
}

TEST(HarpagonExact, FrontierEqualsEveryScheduleEnumerated) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const HarpagonModule module = small_problem(seed).modules[0];
    const Frontier naive = every_schedule(module.configurations, module.rate_rps);
    const ModuleFrontier exact(module.configurations, module.rate_rps, {});
    ASSERT_TRUE(exact.complete());
    const auto &a = naive.points(), &b = exact.frontier().points();
    ASSERT_EQ(a.size(), b.size()) << "seed " << seed;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i].latency_s, b[i].latency_s, 1e-7) << "seed " << seed;
      EXPECT_NEAR(a[i].cost, b[i].cost, 1e-7) << "seed " << seed;
      const ModuleSchedule s = exact.schedule(b[i].choice);  // the stored schedule is what the point says
      EXPECT_NEAR(s.cost, b[i].cost, 1e-7);
      EXPECT_NEAR(s.latency_s, b[i].latency_s, 1e-7);
      double served = 0;
      for (const Tuple& t : s.tuples) served += t.rate_rps();
      EXPECT_NEAR(served, module.rate_rps + s.dummy_rps, 1e-6);
    }
  }
}

// Any DAG, all combinations of the naive frontiers.
double enumerated_optimum(const HarpagonProblem& problem) {
  std::vector<Frontier> frontiers;
  std::vector<std::vector<std::uint32_t>> after;
  for (const HarpagonModule& m : problem.modules) {
    frontiers.push_back(every_schedule(m.configurations, m.rate_rps));
    after.push_back(m.after);
  }
  double best = kNoPlan;
  std::vector<double> latency(frontiers.size());
  const auto visit = [&](const auto& self, std::size_t m, double cost) -> void {
    if (m == frontiers.size()) {
      if (longest_path(after, latency) <= problem.slo_s * (1 + kRelative)) best = std::min(best, cost);
      return;
    }
    for (const FrontierPoint& p : frontiers[m].points()) {
      latency[m] = p.latency_s;
      self(self, m + 1, cost + p.cost);
    }
  };
  visit(visit, 0, 0);
  return best;
}

TEST(HarpagonExact, EqualsEnumerationOnAnyDag) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const HarpagonProblem problem = small_problem(seed);
    const double expected = enumerated_optimum(problem);
    const HarpagonPlan exact = cheapest_plan(problem), brute = brute_force(problem);
    ASSERT_EQ(exact.feasible(), expected < kNoPlan) << "seed " << seed;
    ASSERT_EQ(brute.feasible(), expected < kNoPlan) << "seed " << seed;
    if (expected == kNoPlan) continue;
    ++feasible;
    EXPECT_TRUE(exact.proven);
    EXPECT_NEAR(exact.cost, expected, 1e-6) << "seed " << seed;
    EXPECT_NEAR(brute.cost, expected, 1e-6) << "seed " << seed;
  }
  EXPECT_GT(feasible, 60);
}

TEST(HarpagonExact, SameSeedSameWorkload) {
  const HarpagonProblem a = harpagon_workload(3, 17), b = harpagon_workload(3, 17), c = harpagon_workload(4, 17);
  EXPECT_EQ(a.slo_s, b.slo_s);
  EXPECT_EQ(a.modules[0].rate_rps, b.modules[0].rate_rps);
  EXPECT_NE(a.slo_s, c.slo_s);
}

TEST(HarpagonExact, ImpossibleObjectiveIsAValue) {
  HarpagonProblem problem = harpagon_workload(1, 0);
  problem.slo_s = 0.001;
  EXPECT_FALSE(cheapest_plan(problem).feasible());
  EXPECT_FALSE(brute_force(problem).feasible());
}

}  // namespace
}  // namespace leat::planner
