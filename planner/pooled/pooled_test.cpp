#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "planner/pooled/checker.h"
#include "planner/pooled/solver.h"
#include "planner/test/pooled_twin.h"
#include "planner/test/test_data.h"

namespace leat::planner {
namespace {

// Each second round with a hand-over of its own for each ordered pair of types, some in place.
TEST(Pooled, EqualsTheNaiveTwin) {
  const std::uint64_t seed = 20250601;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  int feasible = 0;
  for (int round = 0; round < 120; ++round) {
    std::vector<Profile> profiles;
    const std::size_t dnns = 1 + random() % 2;
    for (std::size_t i = 0; i < dnns; ++i) profiles.push_back(random_profile(random, 2 + random() % 2));
    PooledProblem p = small_problem(random, profiles);
    if (round % 2 == 1)
      for (int pair = 0; pair < 4; ++pair) p.pair_gbps.push_back(static_cast<double>(random() % 4) / 2);
    const PooledSolution found = solve_pooled(p);
    const double whole = twin_optimum(p, 1), shared = twin_optimum(p, 2);
    feasible += shared > 0;
    ASSERT_NEAR(found.certificate.objective, shared, 1e-7 * (1 + shared)) << "round " << round;
    ASSERT_NEAR(found.whole_gpu_objective, whole, 1e-7 * (1 + whole)) << "round " << round;
    if (!found.feasible) continue;
    ASSERT_EQ(problem_of(p, found.dnns, {}), "") << "round " << round;
    ASSERT_LE(found.certificate.objective, found.lp_bound * (1 + 1e-9));
    ASSERT_EQ(found.certificate.gap, 0);
  }
  EXPECT_GT(feasible, 60);  // the draw is worth its name
}

TEST(Pooled, IsDeterministic) {
  std::mt19937_64 random(7);
  std::vector<Profile> profiles{random_profile(random, 3), random_profile(random, 3)};
  PooledProblem p = small_problem(random, profiles);
  p.types[0].count = 40, p.types[1].count = 60;
  const PooledSolution a = solve_pooled(p), b = solve_pooled(p);
  ASSERT_TRUE(a.feasible);
  EXPECT_EQ(a.certificate.objective, b.certificate.objective);
  ASSERT_EQ(a.dnns.size(), b.dnns.size());
  for (std::size_t i = 0; i < a.dnns.size(); ++i) {
    ASSERT_EQ(a.dnns[i].pipelines.size(), b.dnns[i].pipelines.size());
    for (std::size_t k = 0; k < a.dnns[i].pipelines.size(); ++k) {
      for (std::size_t s = 0; s < a.dnns[i].pipelines[k].stages.size(); ++s) {
        EXPECT_EQ(a.dnns[i].pipelines[k].stages[s].vgpus, b.dnns[i].pipelines[k].stages[s].vgpus);
      }
    }
  }
}

TEST(Pooled, AnImpossibleSloIsAResultThatNamesTheModel) {
  std::mt19937_64 random(3);
  std::vector<Profile> profiles{random_profile(random, 2)};
  PooledProblem p = small_problem(random, profiles);
  p.dnns[0].budget_us = 1;
  const PooledSolution s = solve_pooled(p);
  EXPECT_FALSE(s.feasible);
  EXPECT_NE(s.certificate.binding.find(profiles[0].model), std::string::npos);
}

TEST(Pooled, FewStepsStillGiveAPlanAndAnHonestGap) {
  std::mt19937_64 random(11);
  std::vector<Profile> profiles{random_profile(random, 3), random_profile(random, 3), random_profile(random, 3)};
  PooledProblem p = small_problem(random, profiles);
  for (GpuType& t : p.types) t.count = 500;
  PooledEffort little;
  little.steps = 2000;
  const PooledSolution quick = solve_pooled(p, little), full = solve_pooled(p);
  ASSERT_TRUE(full.feasible);
  ASSERT_EQ(full.certificate.gap, 0);
  if (!quick.feasible) return;
  EXPECT_EQ(problem_of(p, quick.dnns, {}), "");
  EXPECT_GE(quick.certificate.upper_bound, full.certificate.objective * (1 - 1e-9));
}

TEST(Pooled, TheCheckerFindsWhatIsWrong) {
  std::mt19937_64 random(5);
  std::vector<Profile> profiles{random_profile(random, 3)};
  PooledProblem p = small_problem(random, profiles);
  p.types[0].count = p.types[1].count = 6;
  const PooledSolution s = solve_pooled(p);
  ASSERT_TRUE(s.feasible);
  ASSERT_EQ(problem_of(p, s.dnns, {}), "");
  auto broken = [&](auto&& change) {
    auto plan = s.dnns;
    change(plan[0]);
    return problem_of(p, plan, {});
  };
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].rps *= 1.01, d.rps *= 1.01; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].stages[0].vgpus += 100; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].stages.back().end_block -= 1; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines.push_back(d.pipelines[0]), d.rps *= 2; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].batch = 7; }), "");
  p.dnns[0].budget_us /= 10;
  EXPECT_NE(problem_of(p, s.dnns, {}), "");
}

TEST(Pooled, TheFreeRulesHaveTheirOwnCheck) {
  std::mt19937_64 random(6);
  std::vector<Profile> profiles{random_profile(random, 3)};
  PooledProblem p = small_problem(random, profiles);
  p.types[0].count = p.types[1].count = 6;
  const PooledSolution s = solve_free(p);
  ASSERT_TRUE(s.feasible);
  ASSERT_EQ(problem_of_free(p, s.dnns, {}), "");
  auto broken = [&](auto&& change) {
    auto plan = s.dnns;
    change(plan[0]);
    return problem_of_free(p, plan, {});
  };
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].rps *= 1.01, d.rps *= 1.01; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].stages[0].vgpus += 100; }), "");
  EXPECT_NE(broken([](auto& d) { d.pipelines[0].batch = 7; }), "");
  EXPECT_NE(broken([](auto& d) {
              for (int k = 0; k < 30; ++k) d.pipelines.push_back(d.pipelines[0]);
              d.rps += 30 * d.pipelines[0].rps;
            }),
            "");
}

}  // namespace
}  // namespace leat::planner
