// Plans that share partitions in time: the figures of two cores, against enumeration, and never below dedicated ones.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "planner/build/build_plan.h"
#include "planner/build/plan_checker.h"
#include "planner/shared/shared_problem.h"
#include "planner/shared/waits.h"

namespace leat::planner {
namespace {

Profile affine(const std::string& model, const std::vector<std::string>& classes, double fixed_ms, double each_ms,
               std::uint32_t max, std::vector<double> speed = {}) {
  Profile p;
  p.model = model;
  p.blocks = 1;
  p.block_memory_bytes = {1 << 20};
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (std::uint32_t b = 1; b <= max; ++b) {
      const auto ns = static_cast<std::int64_t>(1e6 * (fixed_ms + each_ms * b) / (c < speed.size() ? speed[c] : 1));
      p.rows.push_back({classes[c], 1, b, {{ns, ns, 100}}});
    }
  return p;
}

Host host_of(const std::string& json) {
  auto host = parse_host(R"({"schema": "leat-host/1", "partitions": [)" + json + "]}", "host.json");
  EXPECT_TRUE(host.ok()) << host.error();
  return *host;
}

// time-shared-plans, section 1: on two cores a detector of 1.35 ms and nine items of .003 ms: a core each carries half.
TEST(SharedPlan, ACascadeOnTwoCoresSharesBoth) {
  PlanRequest r;
  r.profiles = {affine("detector", {"cpu:1"}, 0, 1.35, 8), affine("classifier", {"cpu:1"}, 0, .003, 64)};
  r.applications = {
      {"demo", 200'000'000, 0, 1, {{"detect", "detector", {}, 1, 1}, {"classify", "classifier", {0}, 9, 16}}}};
  r.host = host_of(R"({"kind": "cpu", "class": "cpu:1", "count": 2})");
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible);
  EXPECT_TRUE(o->shared);
  EXPECT_LT(o->dedicated_rate, 741);
  EXPECT_GT(o->shared_rate, 1.8 * o->dedicated_rate);
  EXPECT_LE(o->shared_rate, 2 / (1.35e-3 + 9 * .003e-3) + 1e-6);
  EXPECT_EQ(problem_of(o->file), "");
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
  for (const Route& route : o->file.plan.routes) EXPECT_EQ(route.stages[0].pool.size(), 2u);
  const auto again = parse_plan(plan_to_json(o->file), "p");
  ASSERT_TRUE(again.ok()) << again.error();
}

TEST(SharedPlan, TwoModulesOnOnePartitionNeedNoSecond) {
  PlanRequest r;
  r.profiles = {affine("a", {"cpu:1"}, 1, 1, 8), affine("b", {"cpu:1"}, 1, 1, 8)};
  r.applications = {{"x", 200'000'000, 0, 1, {{"m", "a", {}, 1, 1}, {"n", "b", {0}, 1, 1}}}};
  r.host = host_of(R"({"kind": "cpu", "class": "cpu:1", "count": 1})");
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  EXPECT_TRUE(o->feasible && o->shared);
  r.rules = Rules::ppipe;
  const auto strict = build_plan(r);
  EXPECT_TRUE(strict.ok() && !strict->feasible);
}

SharedProblem random_problem(std::mt19937& random) {
  const auto pick = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  SharedProblem p;
  const int classes = std::uniform_int_distribution<>(1, 2)(random);
  for (int c = 0; c < classes; ++c) p.count.push_back(std::uniform_int_distribution<>(1, 6)(random));
  SharedApplication& a = p.applications.emplace_back();
  const int modules = std::uniform_int_distribution<>(1, 3)(random);
  double fastest = 0;
  for (int m = 0; m < modules; ++m) {
    SharedModule& module = a.modules.emplace_back();
    module.items = std::uniform_int_distribution<>(1, 3)(random);
    const double fixed = pick(500, 5000), each = pick(200, 3000);
    for (int c = 0; c < classes; ++c) {
      const double speed = pick(.5, 2);
      auto& run = module.run_us.emplace_back();
      for (int b = 1; b <= 4; ++b) run.push_back((fixed + each * b) / speed);
    }
    module.slow_us = module.run_us;
    fastest += module.run_us[0][0];
  }
  a.slo_us = fastest * pick(3, 12);
  return p;
}

// Every route at the solution's own U, R and rate, listed: no mix of them carries more than the linear program said,
// and what it said is carried by some mix. One class: the cheapest route decides.
TEST(SharedPlan, WithOneClassTheCheapestRouteDecides) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    SharedProblem p = random_problem(random);
    p.count.resize(1);
    for (auto& m : p.applications[0].modules) m.run_us.resize(1), m.slow_us.resize(1);
    const SharedSolution s = solve_shared(p);
    if (!s.feasible) continue;
    const SharedApplication& a = p.applications[0];
    double min = 1e18;
    for (const std::uint32_t cohort : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      std::vector<std::uint32_t> batch(a.modules.size(), 1);
      const std::function<void(std::size_t, double, double)> list = [&](std::size_t m, double latency, double work) {
        if (latency > a.slo_us) return;
        if (m == a.modules.size()) {
          min = std::min(min, work);
          return;
        }
        for (std::uint32_t b = 1; b <= 4; ++b) {
          const double run = a.modules[m].run_us[0][b - 1], items = a.modules[m].items * cohort;
          if ((b > 1 && b > items) || run > s.longest_run_us[0] * (1 + 1e-9)) continue;
          list(m + 1, latency + stage_us(run, items, b, s.longest_run_us[0], p.count[0]),
               work + a.modules[m].items * run / b);
        }
      };
      list(0, entry_wait_us(cohort, s.utilisation, s.z, 1), 0);
    }
    EXPECT_NEAR(s.z, s.utilisation * 1e6 * p.count[0] / min, s.z * 2e-3) << "seed " << seed;
    EXPECT_LE(s.z, s.bound * (1 + 1e-9)) << "seed " << seed;
  }
}

TEST(SharedPlan, MorePartitionsALongerSloAndASecondClassNeverCarryLess) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const SharedProblem p = random_problem(random);
    const double z = solve_shared(p).z;
    SharedProblem more = p;
    more.count[0] += 1;
    EXPECT_GE(solve_shared(more).z, z * (1 - 5e-3)) << "seed " << seed;
    SharedProblem longer = p;
    longer.applications[0].slo_us *= 1.2;
    EXPECT_GE(solve_shared(longer).z, z * (1 - 5e-3)) << "seed " << seed;
  }
}

TEST(SharedPlan, ByTheModelAPlanIsNeverBelowDedicatedOnesAndKeepsItsPromise) {
  int shared = 0, feasible = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
    PlanRequest r;
    const int modules = std::uniform_int_distribution<>(1, 4)(random);
    double fastest = 0;
    r.applications.push_back({"x", 0, 0, 1, {}});
    for (int m = 0; m < modules; ++m) {
      const std::string name(1, static_cast<char>('a' + m));
      const double fixed = pick(.5, 5), each = pick(.2, 3);
      r.profiles.push_back(affine(name, {"gpu", "slow"}, fixed, each, 8, {1, .5}));
      Module module{name, name, {}, 1, 1};
      if (m > 0) module.after = {static_cast<std::uint32_t>(m - 1)};
      r.applications[0].modules.push_back(module);
      fastest += fixed + each;
    }
    r.applications[0].slo_ns = static_cast<std::int64_t>(fastest * pick(3, 12) * 1e6);
    r.host = host_of(R"({"kind": "gpu", "class": "gpu", "count": )" + std::to_string(1 + seed % 5) +
                     R"(}, {"kind": "gpu", "class": "slow", "count": )" + std::to_string(1 + seed % 4) + "}");
    const auto o = build_plan(r);
    ASSERT_TRUE(o.ok()) << o.error();
    if (!o->feasible) continue;
    ++feasible;
    shared += o->shared;
    EXPECT_GE(std::max(o->shared_rate, o->dedicated_rate), o->dedicated_rate);
    EXPECT_EQ(o->shared, o->shared_rate > o->dedicated_rate * (1 + 1e-6)) << "seed " << seed;
    EXPECT_EQ(problem_of(o->file), "") << "seed " << seed;
    EXPECT_EQ(broken_promise(o->file, r.profiles), "") << "seed " << seed;
  }
  EXPECT_GT(feasible, 8);
  EXPECT_GT(shared, feasible / 2);
}

}  // namespace
}  // namespace leat::planner
