// ReservationScheduler pipelines end to end: what is booked happens, faults break nothing, batches grow where the route
// gains by it.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"
#include "tools/base/text/sanitized.h"

namespace leat::sim {
namespace {

using core::test::kMs;

core::LatencyTable table(const std::vector<TimeNs>& ms_by_batch) {
  core::LatencyTable t;
  for (TimeNs ms : ms_by_batch) t.p50_ns.push_back(ms * kMs);
  t.p99_ns = t.p50_ns;
  return t;
}

// Two stages: 4 partitions on 2 hosts, then 3 partitions on 3 hosts; 1 MB an item over links of 1 GB/s: 1 ms.
Scenario pipeline(const char* preset, double rate_rps, std::uint64_t seed) {
  Scenario s;
  core::Topology& t = s.topology;
  t.applications = {{.slo_ns = 60 * kMs, .rate_rps = rate_rps, .modules = {0}}};
  t.modules = {{.application = 0, .before = {}, .after = {}, .routes = {0}}};
  for (std::uint32_t p = 0; p < 7; ++p)
    t.partitions.push_back({.size = 1, .price = 1, .device = p, .host = p < 4 ? p / 2 : p - 2});
  t.hosts.assign(5, {.up_bytes_per_ns = 1, .down_bytes_per_ns = 1});
  core::RouteSpec route{.module = 0, .batch = 1, .rate_rps = rate_rps, .stages = {}};
  route.stages.push_back({.pool = {0, 1, 2, 3}, .latency = table({10, 14, 20}), .transfer_bytes = 1'000'000});
  route.stages.push_back({.pool = {4, 5, 6}, .latency = table({6, 8, 10, 12}), .transfer_bytes = 0});
  t.routes = {route};
  EXPECT_TRUE(papers::preset(preset, s.policy));
  s.seed = seed;
  s.arrivals = to_stream(poisson(rate_rps, 5000 * kMs, seed));
  return s;
}

std::uint64_t done(const Outcomes& out, Outcome outcome) { return out.counters.total.of(outcome); }

TEST(Reservation, WhatIsBookedHappensWhenLatenciesAreExact) {
  for (const char* preset : {"ppipe", "leat"}) {
    for (double rate : {100.0, 380.0, 900.0}) {
      SCOPED_TRACE(std::string(preset) + " at " + std::to_string(rate));
      Scenario s = pipeline(preset, rate, 7);
      s.check_every = 1;
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained);
      EXPECT_EQ(done(out, Outcome::late) + done(out, Outcome::failed), 0u);
      EXPECT_EQ(done(out, Outcome::completed) + done(out, Outcome::dropped), s.arrivals.size());
      EXPECT_EQ(out.invalid_ns, 0);  // nothing is run in vain
      if (rate == 100) {
        EXPECT_EQ(done(out, Outcome::dropped), 0u);
      }
    }
  }
}

// The plan counts on half of what comes, which its partitions carry in larger batches.
TEST(Reservation, BatchesFollowTheRateThatArrives) {
  constexpr std::uint32_t kPool = 12;
  const auto in_time = [](double planned, double comes) {
    Scenario s;
    core::RouteSpec route{.module = 0, .batch = 8, .rate_rps = planned, .stages = {}};
    for (std::uint32_t k = 0; k < 2; ++k) {
      core::StageSpec stage{.pool = {}, .latency = table({10, 14, 18, 22, 26, 30, 34, 38}), .transfer_bytes = 1 - k};
      for (std::uint32_t p = 0; p < kPool; ++p) stage.pool.push_back(k * kPool + p);
      route.stages.push_back(std::move(stage));
    }
    s.topology.applications = {{.slo_ns = 200 * kMs, .rate_rps = planned, .modules = {0}}};
    s.topology.modules = {{.application = 0, .before = {}, .after = {}, .routes = {0}}};
    s.topology.partitions.resize(2 * kPool);
    s.topology.routes = {route};
    EXPECT_TRUE(papers::preset("leat", s.policy));
    s.arrivals = to_stream(poisson(comes, 10'000 * kMs, 3));
    const Outcomes out = run(s);
    EXPECT_TRUE(out.drained);
    return static_cast<double>(done(out, Outcome::completed)) / static_cast<double>(s.arrivals.size());
  };
  const double followed = in_time(1200, 2400);
  std::printf("2 400/s in time: planned for 1 200/s %.3f, for 2 400/s %.3f\n", followed, in_time(2400, 2400));
  EXPECT_GE(followed, 0.90);
  EXPECT_GE(in_time(1200, 1200), 0.999);
}

// A plan that leaves little slack and needs pairs at both stages: they are entered as pairs, so that the rate is
// carried. With single tasks some partitions run one where the plan counts on two, and the queue they make is too late
// to grow.
TEST(Reservation, PlansThatNeedBatchesGetThem) {
  const auto in_time = [](const char* preset, std::uint32_t batch) {
    Scenario s = pipeline(preset, 520, 5);
    core::RouteSpec& route = s.topology.routes[0];
    s.topology.applications[0].slo_ns = 36 * kMs;
    route.rate_rps = 560, route.batch = batch;
    route.stages[0].latency = table({10, 14, 21, 28});
    route.stages[1].latency = table({8, 10, 15, 20});
    s.check_every = kSanitized ? 64 : 8;
    const Outcomes out = run(s);
    EXPECT_TRUE(out.drained);
    return static_cast<double>(done(out, Outcome::completed)) / static_cast<double>(s.arrivals.size());
  };
  const double pairs = in_time("leat", 2), printed = in_time("ppipe", 2);
  const double single = in_time("leat", 1);  // a plan of single tasks is entered by single tasks
  EXPECT_GT(pairs, single + .02);
  EXPECT_GT(pairs, printed);
}

// On links that are busy the members of such a batch fit in between others where all of them together would have to
// wait: what a search excludes by must not be later than what it then finds.
TEST(Reservation, MembersTravelBetweenOthers) {
  for (const double bytes_per_ns : {0.5, 0.7, 1.0}) {
    for (std::uint64_t seed = 1; seed <= (kSanitized ? 2 : 6); ++seed) {
      SCOPED_TRACE(std::to_string(bytes_per_ns) + " bytes a ns, seed " + std::to_string(seed));
      Scenario s = pipeline("leat", 800, seed);
      core::RouteSpec& route = s.topology.routes[0];
      for (core::LinkSpec& link : s.topology.hosts)
        link = {.up_bytes_per_ns = bytes_per_ns, .down_bytes_per_ns = bytes_per_ns};
      s.topology.applications[0].slo_ns = 32 * kMs;
      route.rate_rps = 800, route.batch = 4;
      route.stages[0].latency = table({10, 13, 16, 19});
      route.stages[1].latency = table({4, 5, 6, 7});
      s.check_every = 16;
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained);
      EXPECT_EQ(done(out, Outcome::late) + done(out, Outcome::failed), 0u);
      EXPECT_EQ(done(out, Outcome::completed) + done(out, Outcome::dropped), s.arrivals.size());
    }
  }
}

TEST(Reservation, SafeUnderFaultsThenDrains) {
  for (const char* preset : {"ppipe", "leat", "reactive"}) {
    for (std::uint64_t seed = 1; seed <= (kSanitized ? 2 : 20); ++seed) {
      SCOPED_TRACE(std::string(preset) + ", seed " + std::to_string(seed));
      Scenario s = pipeline(preset, 350, seed);
      if (seed % 2 == 0) s.topology.routes[0].batch = 2, s.topology.routes[0].rate_rps = 530;  // entered by pairs
      s.noise_permille = 150;
      Random random(seed);
      for (TimeNs at = 100 * kMs; at < 4000 * kMs; at += static_cast<TimeNs>(random.below(150)) * kMs) {
        const auto p = static_cast<core::PartitionId>(random.below(7));
        const auto kind = static_cast<FaultKind>(random.below(4));
        s.faults.push_back({at, kind, p,
                            kind == FaultKind::slow ? static_cast<std::int64_t>(500 + random.below(2500))
                                                    : static_cast<std::int64_t>(random.below(20)) * kMs - 10 * kMs});
      }
      for (core::PartitionId p = 0; p < 7; ++p) {
        s.faults.push_back({4100 * kMs, FaultKind::restore, p, 0});
        s.faults.push_back({4100 * kMs, FaultKind::slow, p, 1000});
      }
      s.check_every = 1;
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained);
      EXPECT_EQ(out.counters.total.in_flight, 0u);
      EXPECT_GT(done(out, Outcome::completed), s.arrivals.size() / 4);
    }
  }
}

TEST(Reservation, BatchesGrowWhereTheRouteGains) {
  // Stage 1 carries 400/s alone and 571/s by twos; stage 2 carries 500/s alone and more when batches are joined.
  const Outcomes printed = run(pipeline("ppipe", 470, 3)), ours = run(pipeline("leat", 470, 3));
  EXPECT_LT(printed.goodput(), 0.90);
  EXPECT_GT(ours.goodput(), 0.97);
}

// Both stages carry 333/s alone and 667/s by fours, and the queue fills up at once: the first stage's batches must grow
// although their members' second legs have joined others by then.
TEST(Reservation, BatchesGrowAlthoughTheirLaterLegsAreJoined) {
  for (const double load : {0.7, 0.9, 0.95}) {
    Scenario s = pipeline("leat", 600, 4);
    core::Topology& t = s.topology;
    t.applications[0].slo_ns = 200 * kMs;
    core::RouteSpec& route = t.routes[0];
    route.batch = 4;
    route.stages[0] = {.pool = {0, 1}, .latency = table({6, 8, 10, 12}), .transfer_bytes = 100'000};
    route.stages[1] = {.pool = {4, 5}, .latency = table({6, 8, 10, 12}), .transfer_bytes = 0};
    s.arrivals = to_stream(poisson(667 * load, 20'000 * kMs, 4));
    s.check_every = 1;
    const Outcomes out = run(s);
    EXPECT_GT(out.goodput(), 0.99) << "load " << load;
    EXPECT_EQ(done(out, Outcome::late), 0u);
  }
}

// ---- overload: a route keeps what it can carry, whatever comes on top ----

struct PoolOf {
  std::uint32_t partitions;
  std::vector<TimeNs> ms_by_batch;
};
using Route = std::vector<PoolOf>;

double carries(const Route& route) {  // items/s
  double min = 1e9;
  for (const PoolOf& pool : route) {
    double best = 0, n = 0;
    for (const TimeNs ms : pool.ms_by_batch)
      best = std::max(best, 1000.0 * pool.partitions * ++n / static_cast<double>(ms));
    min = std::min(min, best);
  }
  return min;
}

// A chain of modules, each with its routes; two partitions to a host, 0.1 ms an item over the links. `carried`: what it
// can carry.
Scenario chain(const std::vector<std::vector<Route>>& modules, TimeNs slo_ms, double& carried) {
  Scenario s;
  core::Topology& t = s.topology;
  carried = 1e9;
  for (const auto& routes : modules) {
    double sum = 0;
    for (const Route& route : routes) sum += carries(route);
    carried = std::min(carried, sum);
  }
  t.applications = {{.slo_ns = slo_ms * kMs, .rate_rps = carried, .modules = {}}};
  for (core::ModuleId m = 0; m < modules.size(); ++m) {
    t.applications[0].modules.push_back(m);
    core::ModuleSpec module{.application = 0, .before = {}, .after = {}, .routes = {}};
    if (m > 0) module.before = {m - 1};
    if (m + 1 < modules.size()) module.after = {m + 1};
    for (const Route& pools : modules[m]) {
      core::RouteSpec route{.module = m, .batch = 4, .rate_rps = std::min(carried, carries(pools)), .stages = {}};
      for (const PoolOf& pool : pools) {
        core::StageSpec stage{.pool = {}, .latency = table(pool.ms_by_batch), .transfer_bytes = 100'000};
        route.batch = std::min(route.batch, static_cast<std::uint32_t>(pool.ms_by_batch.size()));
        for (std::uint32_t i = 0; i < pool.partitions; ++i) {
          if (i % 2 == 0) t.hosts.push_back({.up_bytes_per_ns = 1, .down_bytes_per_ns = 1});
          const auto p = static_cast<core::PartitionId>(t.partitions.size());
          stage.pool.push_back(p);
          t.partitions.push_back(
              {.size = 1, .price = 1, .device = p, .host = static_cast<std::uint32_t>(t.hosts.size() - 1)});
        }
        route.stages.push_back(stage);
      }
      route.stages.back().transfer_bytes = 0;
      module.routes.push_back(static_cast<core::RouteId>(t.routes.size()));
      t.routes.push_back(route);
    }
    t.modules.push_back(module);
  }
  EXPECT_TRUE(papers::preset("leat", s.policy));
  return s;
}

const PoolOf kTwo{2, {6, 8, 10, 12}}, kFour{4, {6, 8, 10, 12}};  // 333/s alone and 667/s by fours, and twice that

struct Overload {
  const char* name;
  std::vector<std::vector<Route>> modules;
  TimeNs slo_ms;
};
const std::vector<Overload> kOverloads = {
    {"one stage", {{{kTwo}}}, 100},
    {"two stages", {{{kTwo, kTwo}}}, 200},
    {"two stages, little slack", {{{kTwo, kTwo}}}, 60},
    {"the first stage is short", {{{kTwo, kFour}}}, 100},
    {"the last stage is short", {{{kFour, kTwo}}}, 100},
    {"batches of one", {{{PoolOf{4, {10}}, PoolOf{3, {7}}}}}, 60},
    {"three stages", {{{kTwo, kTwo, kTwo}}}, 200},
    {"the middle stage is short", {{{kFour, kTwo, kFour}}}, 120},
    {"a route of one stage and one of two", {{{kTwo}, {kTwo, kTwo}}}, 120},
    {"two routes of two stages", {{{kTwo, kTwo}, {PoolOf{1, {8, 11, 14, 17}}, PoolOf{2, {8, 11, 14, 17}}}}}, 120},
    {"one stage, then two", {{{kTwo}}, {{kTwo, kTwo}}}, 200},
    {"a short module of one stage, then two", {{{kTwo}}, {{kFour, kFour}}}, 200},
    {"two stages, then one", {{{kTwo, kTwo}}, {{kTwo}}}, 200},
};

void expect_capacity_kept(const Overload& o, double load, bool bursty, std::int64_t pace_permille, double min) {
  SCOPED_TRACE(std::string(o.name) + (bursty ? ", bursty, load " : ", load ") + std::to_string(load) + ", pace " +
               std::to_string(pace_permille));
  double carried = 0;
  Scenario s = chain(o.modules, o.slo_ms, carried);
  core::Topology real = s.topology;
  for (core::RouteSpec& route : real.routes) {
    for (core::StageSpec& stage : route.stages) {
      for (TimeNs& ns : stage.latency.p50_ns) ns = ns * pace_permille / 1000;
      stage.latency.p99_ns = stage.latency.p50_ns;
    }
  }
  s.reality = &real;
  carried *= 1000.0 / static_cast<double>(pace_permille);
  s.arrivals = to_stream(bursty ? gamma(carried * load, 1.4, 5000 * kMs, 4) : poisson(carried * load, 5000 * kMs, 4));
  s.check_every = 50;
  const Outcomes out = run(s);
  EXPECT_TRUE(out.drained);
  EXPECT_GT(out.goodput() * load, min);
  if (pace_permille == 1000) {
    EXPECT_EQ(done(out, Outcome::late), 0u);
  }
}

TEST(Reservation, OverloadKeepsTheCapacity) {
  for (const Overload& o : kOverloads) {
    for (const double load : {1.2, 1.0, 1.1, 1.5, 2.0, 3.0}) {
      if (kSanitized && load != 1.2) break;
      for (const bool bursty : {true, false}) {
        if (kSanitized && !bursty) break;
        expect_capacity_kept(o, load, bursty, 1000, 0.85);
      }
    }
  }
}

TEST(Reservation, OverloadIsSafeUnderFaultsThenDrains) {
  for (const Overload& o : kOverloads) {
    for (std::uint64_t seed = 1; seed <= (kSanitized ? 1 : 3); ++seed) {
      SCOPED_TRACE(std::string(o.name) + ", seed " + std::to_string(seed));
      double carried = 0;
      Scenario s = chain(o.modules, o.slo_ms, carried);
      s.seed = seed;
      s.noise_permille = 150;
      s.arrivals = to_stream(poisson(carried * 1.2, 2000 * kMs, seed));
      Random random(seed);
      const auto partitions = static_cast<core::PartitionId>(s.topology.partitions.size());
      for (TimeNs at = 100 * kMs; at < 1500 * kMs; at += static_cast<TimeNs>(random.below(150)) * kMs) {
        const auto kind = static_cast<FaultKind>(random.below(4));
        s.faults.push_back({at, kind, static_cast<core::PartitionId>(random.below(partitions)),
                            kind == FaultKind::slow ? static_cast<std::int64_t>(500 + random.below(2500))
                                                    : static_cast<std::int64_t>(random.below(20)) * kMs - 10 * kMs});
      }
      for (core::PartitionId p = 0; p < partitions; ++p) {
        s.faults.push_back({1600 * kMs, FaultKind::restore, p, 0});
        s.faults.push_back({1600 * kMs, FaultKind::slow, p, 1000});
      }
      s.check_every = 1;
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained);
      EXPECT_EQ(out.counters.total.in_flight, 0u);
      EXPECT_GT(done(out, Outcome::completed), s.arrivals.size() / 5);
    }
  }
}

TEST(Reservation, OverloadKeepsTheCapacityWithWrongProfiles) {
  for (const Overload& o : kOverloads) {
    for (const std::int64_t pace : {900, 1100}) {
      for (const double load : {1.2, 1.0, 2.0}) {
        if (kSanitized && (load != 1.2 || pace != 1100)) break;
        expect_capacity_kept(o, load, false, pace, 0.8);
      }
    }
  }
}

// Two senders behind one uplink that is busy most of the time: who does not look at links answers late, who reserves
// them does not.
TEST(Reservation, ReactivePoolsDoNotSeeLinks) {
  const auto late = [](const char* preset) {
    Scenario s = pipeline(preset, 300, 11);
    for (core::LinkSpec& link : s.topology.hosts) link = {.up_bytes_per_ns = 0.17, .down_bytes_per_ns = 0.17};
    const Outcomes out = run(s);
    EXPECT_TRUE(out.drained);
    return std::pair{done(out, Outcome::late), out.goodput()};
  };
  EXPECT_GT(late("reactive").first, 0u);
  EXPECT_EQ(late("leat").first, 0u);
  EXPECT_GT(late("leat").second, late("reactive").second);
}

TEST(Reservation, SameSeedSameTrace) {
  for (const char* preset : {"ppipe", "leat", "reactive"}) {
    EXPECT_EQ(run(pipeline(preset, 420, 5)).trace_hash, run(pipeline(preset, 420, 5)).trace_hash);
    EXPECT_NE(run(pipeline(preset, 420, 5)).trace_hash, run(pipeline(preset, 420, 6)).trace_hash);
  }
}

// PPipe figure 5a: one partition, then two; the second stage goes where it ends first.
TEST(Reservation, SecondStageGoesWhereItEndsFirst) {
  Scenario s;
  core::Topology& t = s.topology;
  t.applications = {{.slo_ns = 100 * kMs, .rate_rps = 50, .modules = {0}}};
  t.modules = {{.application = 0, .before = {}, .after = {}, .routes = {0}}};
  for (std::uint32_t p = 0; p < 3; ++p) t.partitions.push_back({.size = 1, .price = 1, .device = p, .host = p});
  t.hosts.assign(3, {.up_bytes_per_ns = 1, .down_bytes_per_ns = 1});
  core::RouteSpec route{.module = 0, .batch = 1, .rate_rps = 50, .stages = {}};
  route.stages.push_back({.pool = {0}, .latency = table({4}), .transfer_bytes = 2'000'000});
  route.stages.push_back({.pool = {1, 2}, .latency = table({10}), .transfer_bytes = 0});
  t.routes = {route};
  ASSERT_TRUE(papers::preset("ppipe", s.policy));
  for (TimeNs at : {0, 1, 2, 3}) s.arrivals.push_back({.at_ns = 1 + at * kMs});
  std::vector<core::PartitionId> second;
  std::vector<TimeNs> answered;
  s.on_run = [&](const RunEvent& e) {
    if (e.stage == 1) second.push_back(e.partition);
  };
  s.on_answer = [&](const AnswerEvent& e) { answered.push_back(e.at_ns - 1); };
  const Outcomes out = run(s);
  EXPECT_EQ(out.goodput(), 1);
  EXPECT_EQ(second, (std::vector<core::PartitionId>{1, 2, 1, 2}));
  // Stage 1 ends at 4, 8, 12, 16; features are there 2 later; partition 1 is busy 6-16, 2 is busy 10-20, then 16-26,
  // 20-30.
  EXPECT_EQ(answered, (std::vector<TimeNs>{16 * kMs, 20 * kMs, 26 * kMs, 30 * kMs}));
}

}  // namespace
}  // namespace leat::sim
