// The mixed integer program against the naive twin and against enumeration with rows; what its child can do wrong.
#include "planner/pooled/milp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "planner/pooled/candidates.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/solver.h"
#include "planner/test/pooled_twin.h"
#include "planner/test/test_data.h"

namespace leat::planner {
namespace {

constexpr std::chrono::milliseconds kLimit{20'000};

TEST(Milp, EqualsTheNaiveTwin) {
  std::mt19937_64 random(20261122);
  int feasible = 0;
  for (int round = 0; round < 16; ++round) {
    std::vector<Profile> profiles;
    const std::size_t dnns = 1 + random() % 2;
    for (std::size_t i = 0; i < dnns; ++i) profiles.push_back(random_profile(random, 2 + random() % 2));
    const PooledProblem p = small_problem(random, profiles);
    const double whole = twin_optimum(p, 1), shared = twin_optimum(p, 2);
    if (!solve_pooled(p).feasible) continue;
    ++feasible;
    const MilpAnswer some = solve_milp(p, {}, {}, kLimit);
    ASSERT_TRUE(some.proven) << some.problem;
    ASSERT_NEAR(some.objective, shared, 1e-5 * (1 + shared)) << "round " << round;
    ASSERT_NEAR(some.bound, shared, 1e-5 * (1 + shared)) << "round " << round;
    ASSERT_EQ(problem_of(p, some.dnns, {}), "") << "round " << round;
    const MilpAnswer all = solve_milp(p, {.whole = true}, {}, kLimit);
    ASSERT_NEAR(all.objective, whole, 1e-5 * (1 + whole)) << "round " << round;
  }
  EXPECT_GT(feasible, 7);
}

TEST(Milp, ByLeatsRulesIsNeverBelowTheSearchAndProvesIt) {
  std::mt19937_64 random(77);
  int asked = 0;
  for (int round = 0; round < 8; ++round) {
    std::vector<Profile> profiles{random_profile(random, 2)};
    const PooledProblem p = small_problem(random, profiles);
    const PooledSolution found = solve_free(p);
    if (!found.feasible || found.certificate.gap > 0) continue;
    ++asked;
    const MilpAnswer answer = solve_milp(p, {.free = true}, {}, kLimit);
    ASSERT_TRUE(answer.proven) << answer.problem;
    ASSERT_NEAR(answer.objective, found.certificate.objective, 1e-5 * answer.objective) << "round " << round;
    ASSERT_EQ(problem_of_free(p, answer.dnns, {}), "");
    // Told what is known, it finds nothing better, and that is the proof.
    const MilpAnswer above = solve_milp(p, {.free = true, .known = found.certificate.objective}, {}, kLimit);
    EXPECT_TRUE(above.proven);
    EXPECT_FALSE(above.feasible);
    EXPECT_NEAR(above.bound, found.certificate.objective, 1e-5 * above.bound);
  }
  EXPECT_GE(asked, 3);
}

// One stage, whole devices: for every count of every (DNN, type) the rate is the best candidate's.
double enumerated(const PooledProblem& p, const std::vector<MilpRow>& rows) {
  const std::size_t types = p.types.size(), pools = p.dnns.size() * types;
  std::vector<double> rate(pools, 0);
  for (std::size_t i = 0; i < p.dnns.size(); ++i)
    for (const Slot& s : enumerate_slots(p, p.dnns[i], 1))
      for (const Candidate& c : s.candidates)
        rate[i * types + s.types[0]] = std::max(rate[i * types + s.types[0]], c.gpu_rps(0));
  std::vector<std::uint32_t> count(pools, 0);
  double best = -1;
  for (;;) {
    bool holds = true;
    for (std::size_t g = 0; g < types; ++g) {
      std::uint32_t all = 0;
      for (std::size_t i = 0; i < p.dnns.size(); ++i) all += count[i * types + g];
      holds = holds && all <= p.types[g].count;
    }
    for (std::size_t k = 0; k < pools; ++k) holds = holds && (count[k] == 0 || rate[k] > 0);
    std::vector<double> rps(p.dnns.size(), 0);
    for (std::size_t k = 0; k < pools; ++k) rps[k / types] += count[k] * rate[k];
    for (const MilpRow& r : rows) {
      double sum = 0;
      for (const MilpTerm& t : r.terms) {
        const std::uint32_t n = count[t.dnn * types + t.type];
        sum += t.times * (t.of == MilpTerm::Of::rate ? rps[t.dnn] : t.of == MilpTerm::Of::used ? n > 0 : n);
      }
      holds = holds && sum >= r.min - 1e-9 && sum <= r.max + 1e-9;
    }
    if (holds) {
      double z = INFINITY;
      for (std::size_t i = 0; i < p.dnns.size(); ++i) z = std::min(z, rps[i] / p.dnns[i].weight);
      best = std::max(best, z);
    }
    std::size_t k = 0;
    while (k < pools && count[k] == p.types[k % types].count) count[k++] = 0;
    if (k == pools) return best;
    ++count[k];
  }
}

TEST(Milp, KeepsRowsLikeEnumerationDoes) {
  std::mt19937_64 random(5);
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Profile> profiles{random_profile(random, 2), random_profile(random, 2)};
    PooledProblem p = small_problem(random, profiles);
    p.max_stages = 1;
    for (GpuType& t : p.types) t.max_share = 1, t.count = static_cast<std::uint32_t>(1 + random() % 4);
    for (PooledDnn& d : p.dnns) d.budget_us *= 3;
    std::vector<MilpRow> rows;
    for (std::size_t r = 0; r < 1 + random() % 3; ++r) {
      MilpRow row;
      for (std::uint32_t d = 0; d < 2; ++d)
        for (std::uint32_t g = 0; g < 2; ++g)
          if (random() % 3 != 0)
            row.terms.push_back({static_cast<MilpTerm::Of>(random() % 3), d, g, static_cast<double>(random() % 5) - 1});
      if (row.terms.empty()) continue;
      (random() % 2 == 0 ? row.max : row.min) = static_cast<double>(random() % 4);
      rows.push_back(std::move(row));
    }
    const double best = enumerated(p, rows);
    const MilpAnswer answer = solve_milp(p, {}, rows, kLimit);
    ASSERT_TRUE(answer.proven) << answer.problem;
    (best > 0 ? feasible : infeasible) += 1;
    ASSERT_NEAR(answer.objective, std::max(0.0, best), 1e-5 * (1 + best)) << "round " << round;
    if (answer.feasible) {
      ASSERT_EQ(broken_row(answer.dnns, rows), "") << "round " << round;
    }
  }
  EXPECT_GT(feasible, 10);
  EXPECT_GT(infeasible, 3);
}

TEST(Milp, AChildThatIsLateIsSaid) {
  std::mt19937_64 random(9);
  std::vector<Profile> profiles;
  for (int i = 0; i < 2; ++i) profiles.push_back(random_profile(random, 4));
  PooledProblem p = small_problem(random, profiles);
  for (GpuType& t : p.types) t.count = 50, t.max_share = 2;
  for (PooledDnn& d : p.dnns) d.budget_us *= 3;
  const auto begun = std::chrono::steady_clock::now();
  const MilpAnswer answer = solve_milp(p, {.free = true}, {}, std::chrono::milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(40));
  EXPECT_GT(answer.columns, 50U);
  if (!answer.proven) {
    EXPECT_GE(answer.bound, solve_free(p).certificate.objective * (1 - 1e-6));
  }
}

}  // namespace
}  // namespace leat::planner
