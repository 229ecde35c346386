// What a record's frames would have come to: asked for what was done, the totals are those of the record; asked for
// something else, they are those of a run of that.
#include "engine/sim/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/recorded_pictures.h"
#include "engine/sim/recorded_times.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

using core::test::kMs;
using core::test::kUs;

constexpr TimeNs kSecond = 1'000 * kMs, kOverheadNs = 150 * kUs;
constexpr std::uint64_t kSeed = 11, kDraws = 3;

struct Tape {
  std::vector<std::byte> bytes = std::vector<std::byte>(32 * record::kSegmentBytes);
  record::Ring ring{bytes, record::kSegmentBytes, 0, "test"};
};

core::StageSpec stage(std::vector<core::PartitionId> pool, TimeNs base, TimeNs each) {
  return {.pool = std::move(pool), .latency = core::test::affine(base, each, 8)};
}

// Two applications, of which the second has two modules; every partition serves every module.
core::Topology all_on_all(std::uint32_t partitions = 4) {
  core::Topology t;
  std::vector<core::PartitionId> all(partitions);
  for (core::PartitionId p = 0; p < partitions; ++p) all[p] = p;
  t.partitions.resize(partitions);
  t.applications = {{.slo_ns = 150 * kMs, .modules = {0}}, {.slo_ns = 250 * kMs, .modules = {1, 2}}};
  t.modules = {{.application = 0, .routes = {0}},
               {.application = 1, .after = {2}, .routes = {1}},
               {.application = 1, .before = {1}, .items_per_request = 2, .fan_out_cap = 4, .routes = {2}}};
  t.routes = {{.module = 0, .batch = 8, .rate_rps = 400, .stages = {stage(all, 4 * kMs, 2 * kMs)}},
              {.module = 1, .batch = 8, .rate_rps = 400, .stages = {stage(all, 5 * kMs, 2 * kMs)}},
              {.module = 2, .batch = 8, .rate_rps = 800, .stages = {stage(all, 2 * kMs, kMs)}}};
  return t;
}

// A model cut into two stages, each on partitions of its own.
core::Topology two_stages() {
  core::Topology t;
  t.partitions.resize(6);
  t.applications = {{.slo_ns = 150 * kMs, .modules = {0}}};
  t.modules = {{.application = 0, .routes = {0}}};
  t.routes = {{.module = 0,
               .batch = 8,
               .rate_rps = 1'000,
               .stages = {stage({0, 1, 2}, 6 * kMs, 2 * kMs), stage({3, 4, 5}, 6 * kMs, 2 * kMs)}}};
  return t;
}

// What the partitions do in a second, in batches of 8, divided evenly among the applications.
double capacity_rps(const core::Topology& t) {
  double work = 0;  // of a request of each, in partition-seconds
  for (const core::RouteSpec& r : t.routes)
    for (const core::StageSpec& s : r.stages)
      work += static_cast<double>(s.latency.p50_ns[7] + kOverheadNs) * 1e-9 / 8 * t.modules[r.module].items_per_request;
  return static_cast<double>(t.partitions.size()) / work * static_cast<double>(t.applications.size());
}

// Arrivals, and what a batch takes in this world: its plan, noise, and what waking up and reporting costs.
Scenario world(core::Topology topology, double rate_rps, std::uint32_t noise_permille, TimeNs length) {
  Scenario s;
  s.topology = std::move(topology);
  s.seed = kSeed;
  s.streams.clear();
  std::vector<std::vector<Arrival>> lists;
  const auto applications = static_cast<std::uint32_t>(s.topology.applications.size());
  for (std::uint32_t a = 0; a < applications; ++a) {
    s.streams.push_back({.application = a, .depth = 4096});
    lists.push_back(to_stream(poisson(rate_rps / applications, length, kSeed + a), a));
    s.names.applications.push_back("app" + std::to_string(a));
  }
  s.arrivals = merged(lists);
  for (core::ModuleId m = 0; m < s.topology.modules.size(); ++m) s.names.modules.push_back("m" + std::to_string(m));
  for (core::PartitionId p = 0; p < s.topology.partitions.size(); ++p)
    s.names.partitions.push_back("p" + std::to_string(p));
  s.duration = [noise_permille](const Execution& e) {
    Random random(kSeed ^ mix(e.serial));
    const double noise = std::max(-0.9, random.normal() * noise_permille / 1000);
    return static_cast<TimeNs>(static_cast<double>(e.planned_ns) * (1 + noise)) + kOverheadNs;
  };
  return s;
}

Outcomes run_as(Scenario& s, const char* preset, record::Ring* ring = nullptr) {
  EXPECT_TRUE(papers::preset(preset, s.policy)) << preset;
  s.names.preset = preset;
  s.record = ring;
  return run(s);
}

record::History history_of(const Tape& tape) {
  auto record = record::Record::read(tape.bytes);
  EXPECT_TRUE(record.ok()) << record.error();
  auto out = record::history(*record);
  EXPECT_TRUE(out.ok()) << out.error();
  EXPECT_TRUE(out->whole);
  return std::move(*out);
}

// In overload two runs of 40 s that differ in nothing but the noise differ by half a point, so several are drawn.
std::vector<WhatIf> asked(const record::History& history, Question question) {
  std::vector<WhatIf> draws;
  for (std::uint64_t k = 0; k < kDraws; ++k) {
    question.seed = kSeed + k;
    auto out = what_if(history, question);
    EXPECT_TRUE(out.ok()) << out.error();
    draws.push_back(out.ok() ? std::move(*out) : WhatIf{});
  }
  return draws;
}

double in_time(const std::vector<WhatIf>& draws) {
  double sum = 0;
  for (const WhatIf& d : draws) sum += d.is.in_time();
  return sum / static_cast<double>(draws.size());
}
double in_time(const std::vector<WhatIf>& draws, std::size_t application) {
  double sum = 0;
  for (const WhatIf& d : draws) sum += d.applications[application].is.in_time();
  return sum / static_cast<double>(draws.size());
}

// All of them within half a point, each application within one.
void expect_as_recorded(const std::vector<WhatIf>& draws) {
  const WhatIf& one = draws.front();
  EXPECT_NEAR(100 * in_time(draws), 100 * one.was.in_time(), 0.5) << "seed " << kSeed;
  for (std::size_t a = 0; a < one.applications.size(); ++a)
    EXPECT_NEAR(100 * in_time(draws, a), 100 * one.applications[a].was.in_time(), 1)
        << one.applications[a].name << ", seed " << kSeed;
}

core::Policy policy(const char* preset) {
  core::Policy out;
  EXPECT_TRUE(papers::preset(preset, out));
  return out;
}

struct Case {
  const char* name;
  bool cut;
  double load;
  std::uint32_t noise_permille;
};

class AsRecorded : public testing::TestWithParam<Case> {};

TEST_P(AsRecorded, TheTotalsAreThoseOfTheRecord) {
  constexpr TimeNs kLength = 90 * kSecond;
  const Case& c = GetParam();
  const core::Topology topology = c.cut ? two_stages() : all_on_all();
  Scenario s = world(topology, c.load * capacity_rps(topology), c.noise_permille, kLength);
  Tape tape;
  const Outcomes out = run_as(s, "leat", &tape.ring);
  const record::History history = history_of(tape);
  const auto draws = asked(history, {.policy = policy("leat")});
  const WhatIf& one = draws.front();
  double low = 1, high = 0;
  for (const WhatIf& d : draws) {
    low = std::min(low, d.is.in_time());
    high = std::max(high, d.is.in_time());
    EXPECT_EQ(d.is.frames, one.was.frames);
  }
  std::printf("%s, seed %llu: %.2f in the record, %.2f (%.2f to %.2f) drawn; %.1f s of %.0f requests/s in %.3f s\n",
              c.name, static_cast<unsigned long long>(kSeed), 100 * one.was.in_time(), 100 * in_time(draws), 100 * low,
              100 * high, kLength / 1e9, static_cast<double>(one.was.frames) * 1e9 / kLength, one.cpu_seconds);
  EXPECT_EQ(one.was.frames, out.counters.total.submitted);
  EXPECT_LT(one.unseen * 1000, one.batches);
  expect_as_recorded(draws);
}

INSTANTIATE_TEST_SUITE_P(
    WhatIf, AsRecorded,
    testing::Values(Case{"all_on_all_085_5", false, 0.85, 50}, Case{"all_on_all_085_20", false, 0.85, 200},
                    Case{"all_on_all_110_5", false, 1.10, 50}, Case{"all_on_all_110_20", false, 1.10, 200},
                    Case{"two_stages_085_5", true, 0.85, 50}, Case{"two_stages_085_20", true, 0.85, 200},
                    Case{"two_stages_110_5", true, 1.10, 50}, Case{"two_stages_110_20", true, 1.10, 200}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(WhatIf, AnotherPolicyAndOtherPartitionsComeToWhatARunOfThemDoes) {
  const core::Topology topology = all_on_all();
  constexpr TimeNs kLength = 40 * kSecond;
  const double rate = 1.05 * capacity_rps(topology);
  Scenario s = world(topology, rate, 100, kLength);
  Tape tape;
  (void)run_as(s, "leat", &tape.ring);
  const record::History history = history_of(tape);

  const auto expect = [&](const char* what, const core::Topology& instead, const char* preset, Question question) {
    Scenario run = world(instead, rate, 100, kLength);
    const double truth = run_as(run, preset).goodput(), is = in_time(asked(history, std::move(question)));
    std::printf("%s, seed %llu: %.2f, and asked of the record %.2f\n", what, static_cast<unsigned long long>(kSeed),
                100 * truth, 100 * is);
    EXPECT_NEAR(100 * is, 100 * truth, 1) << what;
  };
  expect("another policy", topology, "nexus", {.policy = policy("nexus")});
  auto plans = with_partitions(history, {}, {"p1"});
  ASSERT_TRUE(plans.ok()) << plans.error();
  expect("one partition more", all_on_all(5), "leat", {.policy = policy("leat"), .plans = *plans});
  plans = with_partitions(history, {"p2"}, {});
  ASSERT_TRUE(plans.ok()) << plans.error();
  expect("one partition fewer", all_on_all(3), "leat", {.policy = policy("leat"), .plans = *plans});
  EXPECT_FALSE(with_partitions(history, {"p0", "p1", "p2", "p3"}, {}).ok());
  EXPECT_FALSE(with_partitions(history, {"gpu"}, {}).ok());
}

// Partitions are lost and come back as they did, a plan takes over when it did, and streams come and go.
TEST(WhatIf, WhatHappenedHappensAgain) {
  const core::Topology topology = all_on_all();
  constexpr TimeNs kLength = 40 * kSecond;
  Scenario s = world(topology, 0.85 * capacity_rps(topology), 100, kLength);
  core::Topology smaller = topology;
  for (core::RouteSpec& r : smaller.routes) std::erase(r.stages[0].pool, 3u);
  s.replacements = {{.at_ns = 20 * kSecond, .topology = smaller}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    s.faults.push_back({.at_ns = (8 + i) * kSecond, .kind = FaultKind::lose, .partition = i});
    s.faults.push_back({.at_ns = (12 + i) * kSecond, .kind = FaultKind::restore, .partition = i});
  }
  std::ranges::sort(s.faults, {}, &Fault::at_ns);
  s.lives = {{.closed_ns = 30 * kSecond}, {.opened_ns = 3 * kSecond}};
  std::erase_if(s.arrivals,
                [](const Arrival& a) { return a.stream == 0 ? a.at_ns >= 30 * kSecond : a.at_ns < 3 * kSecond; });
  Tape tape;
  const Outcomes out = run_as(s, "leat", &tape.ring);
  EXPECT_LT(out.goodput(), 0.95);
  expect_as_recorded(asked(history_of(tape), {.policy = policy("leat")}));
}

// Partitions that went on by themselves do so again, with as much of it.
TEST(WhatIf, WhatWentOnByItselfDoesSoAgain) {
  const core::Topology topology = all_on_all();
  for (const double load : {0.5, 0.85, 1.0}) {
    Scenario s = world(topology, load * capacity_rps(topology), 200, 40 * kSecond);
    s.goes_on = true;
    s.policy = policy("leat");
    s.policy.goes_on_within_ns = 50 * kMs;
    s.names.preset = "leat";
    Tape tape;
    s.record = &tape.ring;
    (void)run(s);
    const record::History history = history_of(tape);
    const auto sequels = std::ranges::count_if(history.runs, &record::History::Run::went_on);
    EXPECT_GT(sequels, 100);
    const auto draws = asked(history, {.policy = s.policy});
    std::printf("load %.2f, seed %llu: %.2f in the record with %td batches that were gone on with, %.2f drawn\n", load,
                static_cast<unsigned long long>(kSeed), 100 * draws.front().was.in_time(), sequels,
                100 * in_time(draws));
    expect_as_recorded(draws);
    // Each of them took what the record has for such a one, and not what it has for others.
    EXPECT_LT(draws.front().unseen * 1000, draws.front().batches);
  }
}

// A detector and a classifier of what it finds; two partitions do some 850 pictures a second.
core::Topology detected_and_named(std::uint32_t partitions) {
  core::Topology t = core::test::chain(2, 1, 4, 200 * kUs, 1'200 * kUs, 100 * kMs);
  t.routes[1].stages[0].latency = core::test::affine(100 * kUs, 100 * kUs, 16);
  t.routes[1].batch = 16;
  t.partitions.resize(partitions);
  for (core::RouteSpec& r : t.routes) {
    r.stages[0].pool.resize(partitions);
    for (core::PartitionId p = 0; p < partitions; ++p) r.stages[0].pool[p] = p;
  }
  t.modules[1].fan_out_cap = 4;
  t.modules[1].items_per_request = 3;
  return t;
}

// Cameras that wait for grants, some slower than others to write a picture.
Scenario filmed(std::uint32_t cameras, TimeNs period_ns, TimeNs length, std::uint32_t partitions = 2) {
  Scenario s = world(detected_and_named(partitions), 1, 50, kSecond);
  s.streams.clear();
  s.arrivals.clear();
  for (std::uint32_t c = 0; c < cameras; ++c) {
    s.streams.push_back({.depth = 4, .supersede = core::Supersede::latest, .waits_for_grants = true});
    s.producers.push_back({.write_ns = (1 + c % 5) * 400 * kUs});
    for (TimeNs at = 1 + period_ns * c / cameras; at < length; at += period_ns)
      s.arrivals.push_back({.at_ns = at, .capture_ns = at, .stream = c});
  }
  std::ranges::stable_sort(s.arrivals, {}, &Arrival::at_ns);
  return s;
}

double of_pictures(const std::vector<WhatIf>& draws) {
  double sum = 0;
  for (const WhatIf& d : draws) sum += d.is.of_pictures();
  return sum / static_cast<double>(draws.size());
}

// What they submit is asked for anew: of the frames and of the pictures as many are in time as in the record, with room
// for all and without.
TEST(WhatIf, StreamsThatWaitForGrantsAreAskedAnew) {
  for (const std::uint32_t cameras : {6u, 60u}) {
    Scenario s = filmed(cameras, 40 * kMs, 40 * kSecond);
    Tape tape;
    const Outcomes out = run_as(s, "leat", &tape.ring);
    const auto draws = asked(history_of(tape), {.policy = policy("leat")});
    const WhatIf& one = draws.front();
    std::printf(
        "%u cameras, seed %llu: %.2f of the frames and %.2f of the pictures in the record, %.2f and %.2f drawn\n",
        cameras, static_cast<unsigned long long>(kSeed), 100 * one.was.in_time(), 100 * one.was.of_pictures(),
        100 * in_time(draws), 100 * of_pictures(draws));
    EXPECT_EQ(one.was.frames, out.counters.total.submitted);
    EXPECT_EQ(one.was.left_out == 0, cameras == 6);
    // The core did not see each that it did not want.
    EXPECT_NEAR(static_cast<double>(one.was.frames + one.was.left_out), static_cast<double>(s.arrivals.size()),
                0.002 * static_cast<double>(s.arrivals.size()));
    for (const WhatIf& d : draws) EXPECT_EQ(d.is.frames + d.is.left_out, one.was.frames + one.was.left_out);
    expect_as_recorded(draws);
    EXPECT_NEAR(100 * of_pictures(draws), 100 * one.was.of_pictures(), 0.5);
  }
}

// What a client says of its period is taken where its pictures bear it out, and is no way to fill the memory.
TEST(WhatIf, APeriodThatNobodyKeepsIsNotBelieved) {
  Scenario s = filmed(60, 40 * kMs, 4 * kSecond);
  Tape tape;
  (void)run_as(s, "leat", &tape.ring);
  record::History history = history_of(tape);
  const std::size_t pictures = recorded_pictures(history).size();
  for (record::History::Stream& stream : history.streams) stream.config.period_ns = 1;
  EXPECT_EQ(recorded_pictures(history).size(), pictures);
  for (record::History::Stream& stream : history.streams) stream.config.period_ns = 40 * kMs;
  EXPECT_EQ(recorded_pictures(history).size(), pictures);
}

// With other partitions other pictures are wanted.
TEST(WhatIf, WithMoreRoomMorePicturesAreWanted) {
  Scenario s = filmed(60, 40 * kMs, 20 * kSecond);
  Tape tape;
  (void)run_as(s, "leat", &tape.ring);
  const record::History history = history_of(tape);
  Scenario more = filmed(60, 40 * kMs, 20 * kSecond, 4);
  const Outcomes out = run_as(more, "leat");
  const double truth =
      static_cast<double>(out.counters.total.of(Outcome::completed)) / static_cast<double>(more.arrivals.size());
  auto plans = with_partitions(history, {}, {"p0", "p1"});
  ASSERT_TRUE(plans.ok()) << plans.error();
  const auto draws = asked(history, {.policy = policy("leat"), .plans = *plans});
  std::printf("two partitions more, seed %llu: %.2f of the pictures instead of %.2f, and asked of the record %.2f\n",
              static_cast<unsigned long long>(kSeed), 100 * truth, 100 * draws.front().was.of_pictures(),
              100 * of_pictures(draws));
  EXPECT_GT(truth, draws.front().was.of_pictures() + 0.1);
  EXPECT_NEAR(100 * of_pictures(draws), 100 * truth, 1);
}

// A camera that pauses while every picture is wanted has none meanwhile, and one that closes has none behind that.
TEST(WhatIf, WhereEveryPictureIsWantedNoneIsMissing) {
  Scenario s = filmed(4, 40 * kMs, 10 * kSecond);
  s.lives = {{.closed_ns = 7 * kSecond}};
  std::erase_if(s.arrivals, [](const Arrival& a) {
    return a.stream == 0 ? a.at_ns > 6 * kSecond : a.stream == 1 && a.at_ns / kSecond == 5;
  });
  Tape tape;
  (void)run_as(s, "leat", &tape.ring);
  const auto pictures = recorded_pictures(history_of(tape));
  ASSERT_EQ(pictures.size(), s.arrivals.size());
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_TRUE(pictures[i].submitted);
    EXPECT_EQ(pictures[i].capture_ns, s.arrivals[i].capture_ns);
  }
}

// A partition that its host kept waiting is slow while it was, for whatever runs there, and nowhere else.
TEST(WhatIf, StallsStayWhereTheyWere) {
  const core::Topology topology = all_on_all(2);
  const auto module = [](core::ModuleId m, core::PartitionId p, TimeNs from, TimeNs to) {
    return record::History::Run{
        .sent_ns = from, .start_ns = from, .end_ns = to, .partition = p, .route = m, .module = m, .units = 1};
  };
  record::History h;
  auto plan = std::make_shared<record::RecordedPlan>();
  plan->topology = topology;
  plan->names.modules = {"m0", "m1", "m2"};
  h.plans = {{.at_ns = 0, .plan = plan}};
  for (int i = 0; i < 100; ++i)
    for (const core::PartitionId p : {0u, 1u}) {
      const bool stalls = p == 1 && i == 50;
      h.runs.push_back(module(0, p, i * 20 * kMs, i * 20 * kMs + (stalls ? 18 : 6) * kMs));
    }
  const RecordedTimes times(h);
  const auto& table = topology.routes[0].stages[0].latency;
  const auto ms = [&](core::PartitionId p, TimeNs at) {
    double most = 0;
    for (std::uint64_t draw = 0; draw < 200; ++draw)
      most = std::max(most, static_cast<double>(times.draw({.module = "m0"}, table, 1, p, at, draw).ns) / 1e6);
    return most;
  };
  EXPECT_NEAR(ms(0, 1000 * kMs), 6, 0.01);
  EXPECT_NEAR(ms(1, 980 * kMs), 6, 0.01);
  EXPECT_NEAR(ms(1, 1000 * kMs), 18, 0.01);           // as that one
  EXPECT_NEAR(ms(1, 997 * kMs), 3 + 9, 0.01);         // half of it before, half at a third of the speed
  EXPECT_NEAR(ms(1, 1012 * kMs), 6 + 4, 0.01);        // a third of it in what is left of the stall
  EXPECT_NEAR(ms(core::kNone, 900 * kMs), 18, 0.01);  // a partition of which the record says nothing has its draws
}

// What the record has not seen is what the plan says of it, in the record's proportion.
TEST(WhatIf, TimesOfOtherSizesAndClassesFollowThePlan) {
  const core::Topology topology = all_on_all();
  Scenario s = world(topology, 0.5 * capacity_rps(topology), 0, 10 * kSecond);
  Tape tape;
  (void)run_as(s, "leat", &tape.ring);
  record::History history = history_of(tape);
  std::erase_if(history.runs, [](const auto& r) { return r.units > 2; });
  const RecordedTimes times(history);
  const auto& table = topology.routes[0].stages[0].latency;
  const auto seen = times.draw({.module = "m0"}, table, 2, core::kNone, kSecond, 7);
  EXPECT_TRUE(seen.seen);
  EXPECT_NEAR(static_cast<double>(seen.ns), 8e6 + kOverheadNs, 2'000);
  const auto larger = times.draw({.module = "m0"}, table, 8, core::kNone, kSecond, 7);
  EXPECT_FALSE(larger.seen);
  EXPECT_NEAR(static_cast<double>(larger.ns), 20e6 * (8e6 + kOverheadNs) / 8e6, 10'000);
  const auto slower = times.draw({.module = "m0"}, core::test::affine(8 * kMs, 4 * kMs, 8), 2, core::kNone, kSecond, 7);
  EXPECT_FALSE(slower.seen);
  EXPECT_NEAR(static_cast<double>(slower.ns), 16e6 * (8e6 + kOverheadNs) / 8e6, 10'000);
  const auto cut = times.draw({.module = "m0", .stages = 2}, table, 2, core::kNone, kSecond, 7);
  EXPECT_FALSE(cut.seen);
  EXPECT_NEAR(static_cast<double>(cut.ns), 8e6 * (8e6 + kOverheadNs) / 8e6, 400'000);
  EXPECT_EQ(times.draw({.module = "m9"}, table, 2, core::kNone, kSecond, 7).ns, 8 * kMs);
}

// One run that its host kept waiting says nothing of its size, nor of larger ones.
TEST(WhatIf, AFewRunsOfASizeDecideNothing) {
  record::History h;
  auto plan = std::make_shared<record::RecordedPlan>();
  plan->topology = all_on_all(1);
  plan->names.modules = {"m0", "m1", "m2"};
  h.plans = {{.at_ns = 0, .plan = plan}};
  const auto run = [&](TimeNs at, std::uint32_t units, TimeNs took) {
    h.runs.push_back({.sent_ns = at, .start_ns = at, .end_ns = at + took, .units = units});
  };
  for (int i = 0; i < 50; ++i) run(i * 50 * kMs, 2, 8 * kMs);
  run(3 * kSecond, 4, 40 * kMs);
  const RecordedTimes times(h);
  const auto& table = plan->topology.routes[0].stages[0].latency;
  const auto of = [&](std::uint32_t units) { return times.draw({.module = "m0"}, table, units, core::kNone, 0, 7); };
  EXPECT_TRUE(of(4).seen);
  EXPECT_FALSE(of(8).seen);
  EXPECT_NEAR(static_cast<double>(of(4).ns), 12e6, 1);
  EXPECT_NEAR(static_cast<double>(of(8).ns), 20e6, 1);
}

}  // namespace
}  // namespace leat::sim
