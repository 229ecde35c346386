// Sets of models against enumeration, and plans where memory does not hold all models, or where only sharing plans.
#include "planner/shared/residency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "planner/build/build_plan.h"
#include "planner/build/plan_checker.h"
#include "planner/shared/in_place.h"
#include "planner/shared/replan_rule.h"

namespace leat::planner {
namespace {

ResidencyProblem drawn(std::mt19937& random, std::size_t partitions, std::size_t modules) {
  const auto pick = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  ResidencyProblem p;
  for (std::size_t m = 0; m < modules; ++m) {
    p.module_bytes.push_back(pick(200, 600));
    p.application.push_back(static_cast<std::uint32_t>(m / 2));
    p.weight.push_back(pick(1, 5));
  }
  for (std::size_t k = 0; k < partitions; ++k) {
    p.memory_bytes.push_back(1000);
    p.kind.push_back(k % 2);
    std::vector<double> cost;
    for (std::size_t m = 0; m < modules; ++m) cost.push_back(.01 * pick(.5, 2));
    p.cost_s.push_back(k < 2 ? cost : p.cost_s[k % 2]);
  }
  return p;
}

bool fit(const ResidencyProblem& p, const std::vector<std::vector<bool>>& holds) {
  for (std::size_t k = 0; k < holds.size(); ++k) {
    double bytes = 0;
    for (std::size_t m = 0; m < p.weight.size(); ++m) bytes += holds[k][m] ? p.module_bytes[m] : 0;
    if (bytes > p.memory_bytes[k]) return false;
  }
  return true;
}

TEST(Residency, NearEnumerationAndNeverOverMemory) {
  double sum = 0, least = 1;
  int drawn_problems = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const ResidencyProblem p = drawn(random, 3, 4);
    double best = 0;
    for (std::uint32_t bits = 0; bits < 1u << 12; ++bits) {
      std::vector<std::vector<bool>> holds(3, std::vector<bool>(4));
      for (std::uint32_t b = 0; b < 12; ++b) holds[b / 4][b % 4] = (bits >> b & 1) != 0;
      if (fit(p, holds)) best = std::max(best, flows(p, holds).z);
    }
    const Residency r = choose_residency(p);
    ASSERT_EQ(r.feasible, best > 0) << "seed " << seed;
    if (!r.feasible) continue;
    ++drawn_problems;
    EXPECT_TRUE(fit(p, r.holds)) << "seed " << seed;
    EXPECT_LE(r.z, best * (1 + 1e-9)) << "seed " << seed;
    EXPECT_LE(best, r.bound * (1 + 1e-9)) << "seed " << seed;
    for (std::size_t m = 0; m < 4; ++m) {
      double rate = 0;
      for (std::size_t k = 0; k < 3; ++k) rate += r.rate[k][m];
      EXPECT_GE(rate, r.z * p.weight[m] * (1 - 1e-6)) << "seed " << seed;
    }
    sum += r.z / best;
    least = std::min(least, r.z / best);
  }
  std::printf("%d problems: z over the best of enumeration %.3f on the mean, %.3f at least\n", drawn_problems,
              sum / drawn_problems, least);
  EXPECT_GE(drawn_problems, 30);
  EXPECT_GE(sum / drawn_problems, .97);
  EXPECT_GE(least, .8);
}

TEST(Residency, AModuleThatFitsNowhereHasNoSets) {
  ResidencyProblem p{{100, 100}, {0, 0}, {50, 200}, {0, 1}, {1, 1}, {{.01, .01}, {.01, .01}}};
  EXPECT_FALSE(choose_residency(p).feasible);
}

ResidencyProblem alike(std::size_t partitions, std::size_t modules, double room) {
  ResidencyProblem p;
  p.memory_bytes.assign(partitions, room);
  p.kind.assign(partitions, 0);
  p.module_bytes.assign(modules, 1);
  for (std::uint32_t m = 0; m < modules; ++m) p.application.push_back(m);
  p.cost_s.assign(partitions, std::vector<double>(modules, .01));
  return p;
}

TEST(Residency, SetsInForceFollowTheLoadByFewLoads) {
  ResidencyProblem p = alike(4, 4, 2);
  set_weights(p, {100, 100, 100, 100}, {1, 1, 1, 1});
  const Residency even = choose_residency(p);
  EXPECT_FALSE(looks_for_better(carried(p, even.holds) * 2, 1));
  set_weights(p, {250, 10, 10, 10}, {1, 1, 1, 1});
  const double before = carried(p, even.holds);
  EXPECT_TRUE(looks_for_better(before, 1));
  const Residency better = improve_residency(p, even.holds, .03);
  EXPECT_TRUE(fit(p, better.holds));
  EXPECT_TRUE(worth_a_change(before, .9 * better.z)) << before << " " << better.z;
  const InPlaceWaves order = in_place_waves(even.holds, better.holds, 1);
  EXPECT_TRUE(order.bare.empty());
  EXPECT_FALSE(order.waves.empty());
  EXPECT_EQ(improve_residency(p, better.holds, .03).holds, better.holds);
}

TEST(Residency, OneThatIsHeldOnceKeepsItsPartition) {
  ResidencyProblem p = alike(2, 3, 2);
  set_weights(p, {100, 1, 1}, {1, 1, 1});
  const std::vector<std::vector<bool>> held = {{true, true, false}, {true, false, true}};
  EXPECT_EQ(improve_residency(p, held, .03).holds, held);
  EXPECT_EQ(in_place_waves(held, {{true, false, true}, {true, true, false}}, 1).bare, (std::vector<std::uint32_t>{1}));
}

TEST(Residency, WherePartitionsHaveRoomForAllNothingBinds) {
  EXPECT_FALSE(memory_binds(alike(4, 4, 4)));
  EXPECT_FALSE(memory_binds(alike(4, 4, 0)));
  EXPECT_TRUE(memory_binds(alike(4, 4, 3)));
}

TEST(Residency, HalvesServeInTurnWhateverPartitionsHold) {
  const auto held_without = [](const std::vector<std::vector<bool>>& holds, const std::vector<bool>& out) {
    for (std::size_t m = 0; m < holds.front().size(); ++m) {
      bool known = false, held = false;
      for (std::size_t p = 0; p < holds.size(); ++p) known |= holds[p][m], held |= holds[p][m] && !out[p];
      if (known && !held) return false;
    }
    return true;
  };
  std::size_t done = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<bool>> before(6, std::vector<bool>(4)), after = before;
    for (auto* sets : {&before, &after})
      for (auto& holds : *sets)
        for (int k = 0; k < 2; ++k) holds[random() % 4] = true;
    std::vector<bool> changing(6);
    for (std::size_t p = 0; p < 6; ++p) changing[p] = before[p][0];  // the model that gets another version
    if (std::ranges::count(changing, true) == 0) continue;
    const InPlaceHalves halves = in_place_halves(before, after, changing);
    if (!halves.bare_before.empty() || !halves.bare_after.empty()) continue;
    ++done;
    std::vector<bool> second = changing;
    for (std::size_t p = 0; p < 6; ++p) {
      EXPECT_TRUE(!halves.first[p] || changing[p]);
      if (halves.first[p]) second[p] = false;
    }
    EXPECT_TRUE(held_without(before, halves.first)) << "seed " << seed;
    EXPECT_TRUE(held_without(after, second)) << "seed " << seed;
  }
  EXPECT_GT(done, 50u);
  const std::vector<std::vector<bool>> held = {{true, true}, {false, true}};
  EXPECT_EQ(in_place_halves(held, held, {true, false}).bare_before, (std::vector<std::uint32_t>{0}));
}

// Half of those that hold a model serve it at any moment, and in the end all are done.
TEST(Residency, WavesKeepHalfOfEveryModelsPartitions) {
  std::size_t done = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<bool>> before(8, std::vector<bool>(5)), after = before;
    for (auto* sets : {&before, &after})
      for (auto& holds : *sets)
        for (int k = 0; k < 2; ++k) holds[random() % 5] = true;
    auto now = before;
    const InPlaceWaves order = in_place_waves(before, after, 2);
    for (const auto& wave : order.waves) {
      EXPECT_LE(wave.size(), 2u);
      for (std::size_t m = 0; m < 5; ++m) {
        std::size_t all = 0, left = 0;
        for (std::uint32_t p = 0; p < 8; ++p) {
          all += now[p][m] ? 1 : 0;
          left += now[p][m] && std::find(wave.begin(), wave.end(), p) == wave.end() ? 1 : 0;
        }
        EXPECT_GE(2 * left, all) << "seed " << seed;
        EXPECT_TRUE(all == 0 || left > 0) << "seed " << seed;
      }
      for (const std::uint32_t p : wave) now[p] = after[p];
    }
    EXPECT_EQ(order.bare.empty(), now == after) << "seed " << seed;
    done += order.bare.empty() ? 1 : 0;
  }
  EXPECT_GE(done, 100u);
}

Profile model_of(const std::string& name, double ms, std::int64_t mib, const std::vector<std::string>& classes) {
  Profile p;
  p.model = name;
  p.blocks = 1;
  p.block_memory_bytes = {mib << 20};
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (std::uint32_t b = 1; b <= 8; ++b) {
      const auto ns = static_cast<std::int64_t>(1e6 * ms * (.3 + .7 * b) * (1 + .5 * static_cast<double>(c)));
      p.rows.push_back({classes[c], 1, b, {{ns, ns, 100}}});
    }
  return p;
}

PlanRequest requested(int modules, std::int64_t mib, const std::vector<std::string>& classes, const std::string& host) {
  PlanRequest r;
  for (int m = 0; m < modules; ++m) {
    const std::string name = "m" + std::to_string(m);
    r.profiles.push_back(model_of(name, 3 + m, mib, classes));
    r.applications.push_back({name, 300'000'000, 0, 1, {{name, name, {}, 1, 1}}});
  }
  auto parsed = parse_host(R"({"schema": "leat-host/1", "partitions": [)" + host + "]}", "host.json");
  EXPECT_TRUE(parsed.ok()) << parsed.error();
  r.host = *parsed;
  return r;
}

std::size_t most_models(const PlanFile& file) {
  std::vector<std::size_t> held(file.plan.partitions.size(), 0);
  for (const Route& route : file.plan.routes)
    for (const auto p : route.stages[0].pool) ++held[p];
  return *std::max_element(held.begin(), held.end());
}

// Three models of 600 MiB do not fit a partition of 1000 MiB together, nor two of them.
TEST(Residency, MemoryIsSummedOverWhatAPartitionHolds) {
  const PlanRequest r =
      requested(3, 600, {"gpu"}, R"({"kind": "gpu", "class": "gpu", "count": 4, "memory_bytes": 1048576000})");
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible);
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
  EXPECT_EQ(most_models(o->file), 1u);
  PlanFile all = o->file;  // every model on every partition
  for (Route& route : all.plan.routes) {
    route.stages[0].pool.clear();
    for (std::uint32_t p = 0; p < all.plan.partitions.size(); ++p) route.stages[0].pool.push_back(p);
  }
  EXPECT_NE(broken_promise(all, r.profiles).find("its models need 1887436800 bytes; it has 1048576000"),
            std::string::npos)
      << broken_promise(all, r.profiles);
}

TEST(Residency, WhereRoomIsForThreeOfNineEachPartitionHoldsThree) {
  const PlanRequest r =
      requested(9, 300, {"gpu"}, R"({"kind": "gpu", "class": "gpu", "count": 8, "memory_bytes": 1048576000})");
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible && o->shared);
  EXPECT_EQ(problem_of(o->file), "");
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
  EXPECT_EQ(most_models(o->file), 3u);
  EXPECT_LE(o->solution.certificate.objective, o->solution.certificate.upper_bound);
  std::printf("z %.1f of a bound of %.1f\n", o->solution.certificate.objective, o->solution.certificate.upper_bound);
}

// More modules than partitions, whose classes differ: no dedicated plan exists, and sharing alone may promise nothing.
TEST(Residency, NineModulesOnEightUnequalPartitionsHaveAPlan) {
  for (const double slo_ms : {300.0, 40.0}) {
    PlanRequest r =
        requested(9, 10, {"fast", "slow"},
                  R"({"kind": "gpu", "class": "fast", "count": 4}, {"kind": "gpu", "class": "slow", "count": 4})");
    for (Application& a : r.applications) a.slo_ns = static_cast<std::int64_t>(slo_ms * 1e6);
    const auto o = build_plan(r);
    ASSERT_TRUE(o.ok()) << o.error();
    EXPECT_TRUE(o->feasible) << slo_ms;
    EXPECT_EQ(problem_of(o->file), "") << slo_ms;
    EXPECT_FALSE(o->file.plan.routes.empty()) << slo_ms;
  }
}

TEST(Residency, AConstraintOfMemoryLeavesSharing) {
  PlanRequest r = requested(3, 100, {"gpu"}, R"({"kind": "gpu", "class": "gpu", "count": 2})");
  ASSERT_TRUE(build_plan(r)->shared);
  r.constraints.memory.push_back({"", "gpu", std::int64_t{400} << 20, "c.toml:1: memory: "});
  const auto room = build_plan(r);
  ASSERT_TRUE(room.ok()) << room.error();
  EXPECT_TRUE(room->feasible && room->shared);
  EXPECT_EQ(most_models(room->file), 3u);
  r.constraints.memory[0].at_most_bytes = std::int64_t{250} << 20;
  const auto two = build_plan(r);
  ASSERT_TRUE(two.ok()) << two.error();
  EXPECT_TRUE(two->feasible && two->shared);
  EXPECT_EQ(most_models(two->file), 2u);
}

}  // namespace
}  // namespace leat::planner
