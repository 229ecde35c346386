// The trace hash of every preset on small workloads of every kind, against the recorded ones (trace_hashes.txt). A
// change that is to keep all decisions keeps the file; a change that is to alter some records it anew, with
// LEAT_RECORD=1 in the environment, and says in its commit what has changed and by how much.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"
#include "tools/base/text/sanitized.h"

namespace leat::sim {
namespace {

using core::test::affine;
using core::test::chain;
using core::test::kMs;
using core::test::words_of;

// PARD's chain `lv`, each module on its own partitions, or all on all of them.
core::Topology lv(std::size_t partitions, bool shared) {
  struct Module {
    double d1_ms, f;
  };
  constexpr Module kModules[] = {{18, .30}, {10, .25}, {8, .20}, {9, .25}, {22, .35}};
  core::Topology t = chain(5, partitions, 32, 0, kMs, 500 * kMs);
  for (std::size_t m = 0; m < 5; ++m) {
    const double d1 = kModules[m].d1_ms * kMs, f = kModules[m].f;
    t.routes[m].stages[0].latency = affine(static_cast<TimeNs>(d1 * (1 - f)), static_cast<TimeNs>(d1 * f), 32);
    for (std::size_t p = 0; shared && p < partitions; ++p)
      t.routes[m].stages[0].pool[p] = static_cast<core::PartitionId>(p);
  }
  if (shared) t.partitions.resize(partitions);
  return t;
}

Scenario plain(core::Topology t, double rate, TimeNs length, std::uint64_t seed) {
  Scenario s;
  s.topology = std::move(t);
  s.seed = seed;
  s.arrivals = to_stream(poisson(rate, length, seed));
  return s;
}

// A diamond whose second module fans out, one branch taken by chance; three classes of streams, noise and faults.
Scenario diamond(bool faults) {
  core::Topology t = chain(4, 3, 8, 6 * kMs, 2 * kMs, 200 * kMs);
  t.modules[0].after = {1, 2};
  t.modules[1].after = {3};
  t.modules[1].fan_out_cap = 4;
  t.modules[1].items_per_request = 1.5;
  t.modules[2].before = {0};
  t.modules[2].after = {3};
  t.modules[2].items_per_request = 0.7;
  t.modules[3].before = {1, 2};
  Scenario s = plain(t, 0, 0, 5);
  s.noise_permille = 100;
  s.streams = {{.depth = 500},
               {.slo_ns = 120 * kMs,
                .max_age_ns = 150 * kMs,
                .period_ns = 20 * kMs,
                .depth = 4,
                .supersede = core::Supersede::latest,
                .priority = core::Priority::high},
               {.depth = 10, .supersede = core::Supersede::never_drop, .priority = core::Priority::background}};
  const std::vector<Arrival> lists[] = {to_stream(poisson(500, 3000 * kMs, 5), 0),
                                        to_stream(poisson(50, 3000 * kMs, 6), 1),
                                        to_stream(poisson(20, 3000 * kMs, 7), 2)};
  s.arrivals = merged(lists);
  Random random(9);
  for (TimeNs at = 100 * kMs; faults && at < 2500 * kMs; at += static_cast<TimeNs>(random.below(100)) * kMs) {
    const auto p = static_cast<core::PartitionId>(random.below(12));
    const auto kind = static_cast<FaultKind>(random.below(4));
    s.faults.push_back({at, kind, p,
                        kind == FaultKind::slow ? static_cast<std::int64_t>(500 + random.below(2500))
                                                : static_cast<std::int64_t>(random.below(20)) * kMs - 10 * kMs});
  }
  for (core::PartitionId p = 0; faults && p < 12; ++p) {
    s.faults.push_back({2600 * kMs, FaultKind::restore, p, 0});
    s.faults.push_back({2600 * kMs, FaultKind::slow, p, 1000});
  }
  return s;
}

// One model on partitions of three sizes, requests of several items (ELSA).
Scenario sizes() {
  core::Topology t = chain(1, 2, 16, 4 * kMs, 3 * kMs, 90 * kMs);
  for (const auto& [n, speed] : {std::pair{3u, 2}, std::pair{2u, 4}}) {
    core::RouteSpec route{.module = 0, .batch = 16, .rate_rps = 0, .stages = {}};
    core::StageSpec stage{.pool = {}, .latency = affine(4 * kMs / speed, 3 * kMs / speed, 16)};
    for (std::uint32_t i = 0; i < n; ++i) {
      stage.pool.push_back(static_cast<core::PartitionId>(t.partitions.size()));
      t.partitions.push_back({.size = static_cast<double>(speed), .price = speed * .8});
    }
    route.stages.push_back(stage);
    t.modules[0].routes.push_back(static_cast<core::RouteId>(t.routes.size()));
    t.routes.push_back(route);
  }
  Scenario s = plain(t, 380, 5000 * kMs, 11);
  for (std::size_t i = 0; i < s.arrivals.size(); ++i) s.arrivals[i].items = lognormal_items(i, 3, .9, 16);
  return s;
}

// Routes of two and three stages over hosts with links, one host shared (PPipe).
Scenario pipelines(std::uint32_t queue_ahead) {
  core::Topology t = chain(1, 2, 4, 4 * kMs, 2 * kMs, 120 * kMs);
  t.partitions.resize(12);
  for (std::uint32_t p = 0; p < 12; ++p) t.partitions[p].host = p / 2;
  t.hosts.assign(6, {.up_bytes_per_ns = 1.2, .down_bytes_per_ns = 1.2});
  t.routes[0].rate_rps = 250;
  t.routes[0].stages[0].transfer_bytes = 1'500'000;
  t.routes[0].stages.push_back({.pool = {2, 3, 4}, .latency = affine(5 * kMs, 2 * kMs, 8)});
  t.routes.push_back({.module = 0,
                      .batch = 2,
                      .rate_rps = 220,
                      .stages = {{.pool = {5, 6, 7}, .latency = affine(5 * kMs, 3 * kMs, 4), .transfer_bytes = 800'000},
                                 {.pool = {8, 9}, .latency = affine(2 * kMs, kMs, 6), .transfer_bytes = 500'000},
                                 {.pool = {10, 11}, .latency = affine(3 * kMs, kMs, 6)}}});
  t.modules[0].routes.push_back(1);
  Scenario s = plain(t, 480, 5000 * kMs, 13);
  s.policy.queue_ahead = queue_ahead;
  s.noise_permille = queue_ahead > 0 ? 60 : 0;
  s.faults = {{1500 * kMs, FaultKind::lose, 3, 0}, {2500 * kMs, FaultKind::restore, 3, 0}};
  return s;
}

// Cameras of three classes beside background work, on one and on two partitions (freshness).
Scenario cameras(std::uint32_t partitions) {
  core::Topology t = chain(1, partitions, 4, kMs, 3 * kMs, 100 * kMs);
  const TimeNs each[] = {3 * kMs, 7 * kMs, 12 * kMs};
  t.modules.clear();
  t.routes.clear();
  t.applications.clear();
  for (std::uint32_t a = 0; a < 3; ++a) {
    core::RouteSpec route{.module = a, .batch = 4, .rate_rps = 0, .stages = {{.pool = {}, .latency = {}}}};
    route.stages[0].latency = affine(kMs, each[a], 4);
    for (TimeNs& p99 : route.stages[0].latency.p99_ns) p99 = p99 * 23 / 20;
    for (std::uint32_t p = 0; p < partitions; ++p) route.stages[0].pool.push_back(p);
    t.routes.push_back(route);
    t.modules.push_back({.application = a, .before = {}, .after = {}, .routes = {a}});
    t.applications.push_back({.slo_ns = 100 * kMs, .rate_rps = 0, .modules = {a}});
  }
  Scenario s = plain(t, 0, 0, 17);
  s.noise_permille = 50;
  const auto camera = [](std::uint32_t app, TimeNs period, core::Priority priority) {
    return core::StreamConfig{.application = app,
                              .slo_ns = period,
                              .max_age_ns = 2 * period,
                              .period_ns = period,
                              .depth = 3,
                              .supersede = core::Supersede::latest,
                              .priority = priority};
  };
  s.streams = {camera(0, 20 * kMs, core::Priority::protected_),
               camera(1, 33 * kMs, core::Priority::high),
               camera(1, 40 * kMs, core::Priority::normal),
               {.application = 2, .slo_ns = 2000 * kMs, .depth = 40, .priority = core::Priority::background}};
  std::vector<std::vector<Arrival>> lists;
  for (std::uint32_t i = 0; i < 3; ++i) {
    lists.emplace_back();
    for (TimeNs at = static_cast<TimeNs>(i) * 3 * kMs; at < 3000 * kMs; at += s.streams[i].period_ns)
      lists.back().push_back({.at_ns = at + kMs, .capture_ns = at + 1, .stream = i});
  }
  lists.push_back(to_stream(poisson(partitions * 30, 3000 * kMs, 19), 3));
  s.arrivals = merged(lists);
  return s;
}

// Several routes of one module with batches of their own and stated rates (Harpagon).
Scenario tuples() {
  core::Topology t = chain(1, 2, 8, 10 * kMs, 2 * kMs, 150 * kMs);
  t.routes[0].rate_rps = 500;
  t.applications[0].rate_rps = 720;
  t.partitions.push_back({.price = .4});
  t.partitions.push_back({.price = .4});
  core::RouteSpec small{.module = 0, .batch = 3, .rate_rps = 220, .stages = {{.pool = {2, 3}, .latency = {}}}};
  small.stages[0].latency = affine(12 * kMs, 4 * kMs, 3);
  t.routes.push_back(small);
  t.modules[0].routes.push_back(1);
  return plain(t, 700, 4000 * kMs, 23);
}

struct Named {
  const char* name;
  Scenario (*make)();
};
constexpr Named kScenarios[] = {
    {"dedicated", [] { return plain(lv(4, false), 260, 8000 * kMs, 1); }},
    {"dedicated_overload", [] { return plain(lv(4, false), 420, 8000 * kMs, 2); }},
    {"shared", [] { return plain(lv(8, true), 300, 6000 * kMs, 3); }},
    {"diamond", [] { return diamond(false); }},
    {"diamond_faults", [] { return diamond(true); }},
    {"sizes", sizes},
    {"pipelines", [] { return pipelines(0); }},
    {"pipelines_ahead", [] { return pipelines(1); }},
    {"cameras", [] { return cameras(1); }},
    {"cameras_two", [] { return cameras(2); }},
    {"tuples", tuples},
};

using Hashes = std::map<std::string, std::string>;  // "scenario preset" -> hash

Hashes recorded() {
  Hashes out;
  std::ifstream in(LEAT_TRACE_HASHES);
  for (std::string scenario, preset, hash; in >> scenario >> preset >> hash;) out[scenario + " " + preset] = hash;
  return out;
}

TEST(Golden, EveryPresetDecidesAsRecorded) {
  Hashes now;
  std::size_t turn = 0;
  for (const Named& named : kScenarios) {
    for (const std::string& preset : words_of(papers::preset_names())) {
      if (kSanitized && turn++ % 4 != 0) continue;
      Scenario s = named.make();
      const std::uint32_t ahead = s.policy.queue_ahead;
      ASSERT_TRUE(papers::preset(preset, s.policy));
      s.policy.queue_ahead = ahead;
      s.estimate_draws = 500;
      now[std::string(named.name) + " " + preset] = std::to_string(run(s).trace_hash);
    }
  }
  if (std::getenv("LEAT_RECORD") != nullptr) {
    std::ofstream out(LEAT_TRACE_HASHES);
    for (const auto& [name, hash] : now) out << name << ' ' << hash << '\n';
    return;
  }
  const Hashes before = recorded();
  if (!kSanitized) {
    EXPECT_EQ(before.size(), now.size()) << "record them: LEAT_RECORD=1";
  }
  for (const auto& [name, hash] : now) EXPECT_EQ(hash, before.contains(name) ? before.at(name) : "none") << name;
}

}  // namespace
}  // namespace leat::sim
