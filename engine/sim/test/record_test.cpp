// What goes into a core and comes out of it, recorded in the simulator's runs, read, and replayed: the core that is
// made again does the same, in every kind of plan and whatever happens to it. And what is read may be anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/record/entries.h"
#include "engine/record/replay.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

using core::test::kMs;
using core::test::kUs;

constexpr TimeNs kSecond = 1'000 * kMs, kPeriod = 33'333'333;

// A ring in memory that a scenario records into.
struct Tape {
  explicit Tape(std::uint64_t segments = 16, std::uint64_t segment_bytes = record::kSegmentBytes)
      : bytes(segments * segment_bytes), ring(bytes, segment_bytes, 0, "test") {}
  std::vector<std::byte> bytes;
  record::Ring ring;
};

Outcomes record_run(Scenario& s, Tape& tape, const char* preset = "leat") {
  EXPECT_TRUE(papers::preset(preset, s.policy)) << preset;
  s.names.preset = preset;
  s.record = &tape.ring;
  return run(s);
}

record::Replayed replayed(const Tape& tape) {
  auto record = record::Record::read(tape.bytes);
  EXPECT_TRUE(record.ok()) << record.error();
  auto out = record::replay(*record, papers::presets());
  EXPECT_TRUE(out.ok()) << out.error();
  return out.ok() ? *out : record::Replayed{};
}

void expect_the_same(const Tape& tape, const Outcomes& out) {
  const record::Replayed again = replayed(tape);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.cut, "");
  EXPECT_GT(again.actions, out.requests) << "answers alone are as many";
  EXPECT_EQ(again.same, again.actions);
  EXPECT_EQ(again.total.submitted, out.counters.total.submitted);
  EXPECT_EQ(again.total.answered, out.counters.total.answered);
  EXPECT_EQ(again.total.reasons, out.counters.total.reasons);
}

// The record without its beginning, cut between two segments at several places: from the first state behind it on, all
// actions are the same. With its beginning too, whatever states are in it.
void expect_the_same_from_any_state(const Tape& tape, std::uint64_t cuts = 12) {
  std::uint64_t from_states = 0;
  const std::uint64_t segments = tape.ring.newest(), size = tape.ring.segment_bytes();
  ASSERT_LE(segments, tape.ring.segments()) << "it has come round itself";
  for (std::uint64_t cut = 0; cut < cuts; ++cut) {
    const std::uint64_t lost = cut * segments / cuts;
    SCOPED_TRACE("without " + std::to_string(lost) + " of " + std::to_string(segments) + " segments");
    auto record = record::Record::read({tape.bytes.begin() + static_cast<std::ptrdiff_t>(lost * size),
                                        tape.bytes.begin() + static_cast<std::ptrdiff_t>(segments * size)});
    ASSERT_TRUE(record.ok()) << record.error();
    auto again = record::replay(*record, papers::presets());
    if (!again.ok()) {
      EXPECT_NE(again.error().find("nor a state"), std::string::npos) << again.error();
      continue;
    }
    EXPECT_EQ(again->difference, "") << static_cast<double>(again->differs_ns) * 1e-9 << " s, from "
                                     << static_cast<double>(again->from_ns) * 1e-9;
    EXPECT_EQ(again->cut, "");
    EXPECT_EQ(again->same, again->actions);
    if (lost == 0) {
      EXPECT_EQ(again->skipped, 0u);
    }
    EXPECT_GT(again->actions, 0u);
    from_states += lost != 0 ? 1 : 0;
  }
  EXPECT_GT(from_states, 0u) << "there is no state in it";
}

constexpr std::uint64_t kManySegments = 72, kSmallSegment = 8 << 10;

std::vector<Arrival> load(double rate_rps, TimeNs length, std::uint32_t streams = 1, std::uint64_t seed = 3) {
  std::vector<Arrival> out = to_stream(poisson(rate_rps, length, seed));
  for (std::size_t i = 0; i < out.size(); ++i) out[i].stream = static_cast<std::uint32_t>(i % streams);
  return out;
}

// Two modules of which the second has several tasks a request, on partitions of their own or shared.
Scenario two_modules(bool shared) {
  Scenario s;
  s.topology = core::test::chain(2, 2, 4, 2 * kMs, 3 * kMs, 100 * kMs);
  s.topology.modules[1].fan_out_cap = 4;
  s.topology.modules[1].items_per_request = 2;
  if (shared)
    for (core::RouteSpec& r : s.topology.routes) r.stages[0].pool = {0, 1, 2, 3};
  s.noise_permille = 100;
  s.streams = {{.depth = 64}, {.depth = 2, .supersede = core::Supersede::latest, .user = 1}, {.depth = 64, .user = 2}};
  s.arrivals = load(1'200, 3 * kSecond, 3);
  return s;
}

TEST(Record, QueuesAndWindowsInOverload) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared);
    Scenario s = two_modules(shared);
    Tape tape(kManySegments, kSmallSegment);
    const Outcomes out = record_run(s, tape);
    EXPECT_GT(out.counters.total.of(Outcome::dropped), 0u);
    expect_the_same(tape, out);
    expect_the_same_from_any_state(tape);
  }
}

TEST(Record, PartitionsAreLostSlowAndClocksStep) {
  Scenario s = two_modules(true);
  s.arrivals = load(2'400, 3 * kSecond, 3);
  for (int i = 0; i < 20; ++i) {
    const auto p = static_cast<core::PartitionId>(i % 4);
    s.faults.push_back({.at_ns = (100 + 120 * i) * kMs, .kind = FaultKind::lose, .partition = p});
    s.faults.push_back({.at_ns = (160 + 120 * i) * kMs, .kind = FaultKind::restore, .partition = p});
    s.faults.push_back(
        {.at_ns = (170 + 120 * i) * kMs, .kind = FaultKind::slow, .partition = p, .value = 700 + 100 * i});
    s.faults.push_back(
        {.at_ns = (180 + 120 * i) * kMs, .kind = FaultKind::clock_step, .value = i % 2 == 0 ? 3 * kMs : -3 * kMs});
  }
  Tape tape(kManySegments, kSmallSegment);
  const Outcomes out = record_run(s, tape);
  expect_the_same(tape, out);
  expect_the_same_from_any_state(tape);
  EXPECT_EQ(replayed(tape).losses, 20u);
}

TEST(Record, EveryPreset) {
  for (const core::Preset* preset : papers::presets()) {
    const std::string name(preset->name());
    SCOPED_TRACE(name);
    Scenario s = two_modules(false);
    s.topology.modules[1].fan_out_cap = 1;
    s.topology.modules[1].items_per_request = 1;
    Tape tape(kManySegments, kSmallSegment);
    const Outcomes out = record_run(s, tape, name.c_str());
    expect_the_same(tape, out);
    expect_the_same_from_any_state(tape);
  }
}

TEST(Record, TasksThatDifferInSize) {
  Scenario s = two_modules(true);
  s.size = [](std::size_t arrival, core::ModuleId, std::uint32_t item) {
    return static_cast<std::uint32_t>(1 + mix(arrival + item) % 3);
  };
  Tape tape(kManySegments, kSmallSegment);
  expect_the_same(tape, record_run(s, tape));
  expect_the_same_from_any_state(tape);
}

TEST(Record, PartitionsThatGoOnByThemselves) {
  Scenario s = two_modules(true);
  s.arrivals = load(500, 8 * kSecond, 3);
  s.goes_on = true;
  ASSERT_TRUE(papers::preset("leat", s.policy));
  s.policy.goes_on_within_ns = 50 * kMs;
  s.names.preset = "leat";
  Tape tape(kManySegments, kSmallSegment);
  s.record = &tape.ring;
  const Outcomes out = run(s);
  expect_the_same(tape, out);
  expect_the_same_from_any_state(tape);
  auto record = record::Record::read(tape.bytes);
  ASSERT_TRUE(record.ok());
  std::uint64_t went_on = 0, batches = 0;
  for (record::Entry e; record->next(e);) {
    if (e.kind != record::Kind::dispatch) continue;
    ++batches;
    went_on += e.flag ? 1 : 0;
  }
  EXPECT_GT(went_on, batches / 10);
}

// Coordinated cameras, streams that wait for grants, a pipeline of two stages, and plans that take over all the time.
TEST(Record, PlansCamerasAndGrants) {
  const auto stage = [](std::vector<core::PartitionId> pool, TimeNs base, std::int64_t bytes = 0) {
    core::StageSpec out{.pool = std::move(pool), .latency = {}, .transfer_bytes = bytes};
    for (int b = 1; b <= 8; ++b) out.latency.p50_ns.push_back(base + b * kMs);
    out.latency.p99_ns = out.latency.p50_ns;
    return out;
  };
  const auto plan = [&](std::vector<core::StageSpec> cut, std::vector<core::PartitionId> rest) {
    core::Topology t;
    t.partitions.resize(6);
    for (std::uint32_t a = 0; a < 3; ++a) {
      t.modules.push_back({.application = a, .routes = {a}});
      t.applications.push_back({.slo_ns = 200 * kMs, .modules = {a}});
    }
    t.routes.push_back({.module = 0, .batch = 8, .rate_rps = 300, .stages = std::move(cut)});
    t.routes.push_back({.module = 1, .batch = 8, .rate_rps = 300, .stages = {stage(rest, 5 * kMs)}});
    t.routes.push_back({.module = 2, .batch = 8, .rate_rps = 300, .stages = {stage(rest, 6 * kMs)}});
    return t;
  };
  const std::array plans = {plan({stage({0, 1}, 4 * kMs, 1000), stage({2, 3}, 4 * kMs)}, {4, 5}),
                            plan({stage({2, 3}, 4 * kMs, 1000), stage({0, 1}, 4 * kMs)}, {4, 5}),
                            plan({stage({0, 1, 2}, 8 * kMs)}, {3, 4, 5})};
  Scenario s;
  s.topology = plans[0];
  s.limits.partitions = 6;
  s.limits.coordinated = 8;
  s.noise_permille = 50;
  s.streams = {{.application = 0, .depth = 64}, {.application = 2, .depth = 64, .user = 1}};
  for (std::uint32_t g = 0; g < 8; ++g)
    s.streams.push_back(
        {.application = 2, .depth = 4, .supersede = core::Supersede::latest, .user = 2, .waits_for_grants = true});
  s.arrivals = load(2'000, 4 * kSecond, 10);
  for (std::uint32_t c = 0; c < 4; ++c) {
    s.cameras.push_back({.stream = static_cast<core::StreamId>(s.streams.size()),
                         .phase_ns = c * 7 * kMs,
                         .seen = [](std::uint64_t, std::uint32_t stride) { return 0.035 + 0.002 * stride; }});
    s.streams.push_back({.application = 1,
                         .depth = 8,
                         .supersede = core::Supersede::latest,
                         .user = 1 + c % 2,
                         .terms = {.sla_drop = 0.06, .period_ns = kPeriod}});
  }
  s.cameras_until_ns = 4 * kSecond;
  for (std::size_t i = 0; i < 40; ++i)
    s.replacements.push_back(
        {.at_ns = static_cast<TimeNs>(i + 2) * 90 * kMs, .topology = plans[(i + 1) % plans.size()]});
  Tape tape(kManySegments, kSmallSegment);
  const Outcomes out = record_run(s, tape);
  expect_the_same_from_any_state(tape, 16);
  const record::Replayed again = replayed(tape);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.same, again.actions);
  EXPECT_EQ(again.plans, 40u);
  EXPECT_EQ(again.total.answered, out.counters.total.answered);
}

TEST(Record, StreamsThatWaitForGrants) {
  Scenario s;
  s.topology = core::test::chain(2, 1, 4, 200 * kUs, 1'200 * kUs, 100 * kMs);
  for (core::RouteSpec& r : s.topology.routes) r.stages[0].pool = {0, 1};
  s.limits.streams = 128;
  s.streams.clear();
  for (std::uint32_t c = 0; c < 48; ++c) {
    s.streams.push_back({.depth = 4, .supersede = core::Supersede::latest, .waits_for_grants = c % 8 != 0});
    for (TimeNs at = 1 + kPeriod * c / 48; at < 3 * kSecond; at += kPeriod)
      s.arrivals.push_back({.at_ns = at, .capture_ns = at, .stream = c});
  }
  std::ranges::stable_sort(s.arrivals, {}, &Arrival::at_ns);
  s.noise_permille = 50;
  Tape tape(kManySegments, 2 * kSmallSegment);  // each begins with 48 streams
  const Outcomes out = record_run(s, tape);
  expect_the_same_from_any_state(tape);
  EXPECT_GT(out.counters.total.granted, 0u);
  const record::Replayed again = replayed(tape);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.same, again.actions);
  EXPECT_EQ(again.total.granted, out.counters.total.granted);
}

// A partition is lost with two batches in hand, the second begun beside the first: both frames are suspected, and so
// they are when the core is made again.
TEST(Record, BatchesThatBeganBesideAnother) {
  core::Policy policy;
  ASSERT_TRUE(papers::preset("leat", policy));
  policy.queue_ahead = 1;
  core::Topology topology = core::test::chain(1, 1, 1, kMs, 0, 500 * kMs);
  topology.routes[0].stages[0].overlap_permille = 300;
  Tape tape;
  record::RecordedCore core(topology, policy, {}, {.preset = "leat"});
  TimeNs now = 1;
  core.record(&tape.ring, now);
  core.partition_ready(now, 0);
  const core::StreamId stream = core.open_stream(now, {.application = 0, .depth = 8});
  for (std::uint64_t token = 1; token <= 2; ++token) {
    core.submit(++now, {.stream = stream, .token = token, .capture_ns = now});
  }
  std::uint64_t alone = 0;
  std::vector<core::BatchHandle> sent;
  const auto drain = [&] {
    for (core::Action a; core.next_action(a);)
      if (a.kind == core::ActionKind::dispatch) {
        sent.push_back(a.batch);
        alone += a.alone ? 1 : 0;
      }
  };
  drain();
  ASSERT_EQ(sent.size(), 2u);
  core.stage_started(++now, sent[0], 0);
  core.stage_beside(++now, sent[1], 0);
  (void)core.partition_lost(++now, 0);
  core.stage_beside(++now, sent[1], 0);  // too late: it is stale
  core.partition_ready(++now, 0);
  drain();
  for (std::size_t i = 2; i < sent.size(); ++i) {
    core.stage_started(++now, sent[i], 0);
    (void)core.stage_finished(++now, sent[i], 0, {});
    drain();
  }
  core.record(nullptr, now);
  EXPECT_EQ(alone, 2u);
  EXPECT_EQ(core.counters().total.of(Outcome::completed) + core.counters().total.of(Outcome::late), 2u);
  const record::Replayed again = replayed(tape);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.cut, "");
  EXPECT_EQ(again.same, again.actions);
  EXPECT_EQ(again.losses, 1u);
  EXPECT_EQ(again.total.answered, core.counters().total.answered);
}

// What a partition may go on with by itself is in the record as far as a plan decides it.
TEST(Record, WhatBatchesMayGoOnWith) {
  for (const bool differs : {false, true}) {
    core::Policy policy;
    ASSERT_TRUE(papers::preset("leat", policy));
    policy.goes_on_within_ns = kMs;
    core::Topology topology = core::test::chain(2, 1, 1, kMs, 0, 500 * kMs);
    topology.partitions.resize(1);
    topology.routes[1].stages[0].pool = {0};
    topology.modules[1].differs_in_size = differs;
    Tape tape;
    record::RecordedCore core(topology, policy, {}, {.preset = "leat"});
    TimeNs now = 1;
    core.record(&tape.ring, now);
    core.partition_ready(now, 0);
    const core::StreamId stream = core.open_stream(now, {.application = 0, .depth = 8});
    core.submit(++now, {.stream = stream, .token = 1, .capture_ns = now});
    core::Action sent;
    ASSERT_TRUE(core.next_action(sent));
    EXPECT_EQ(sent.then, differs ? core::kNone : 1u);
    core.record(nullptr, now);
    const record::Replayed again = replayed(tape);
    EXPECT_EQ(again.difference, "");
    EXPECT_EQ(again.same, again.actions);
  }
}

TEST(Record, AnotherPolicyDiffersAndIsSaid) {
  Scenario s = two_modules(true);
  Tape tape;
  (void)record_run(s, tape);
  auto record = record::Record::read(tape.bytes);
  ASSERT_TRUE(record.ok());
  record::Entry e;
  ASSERT_TRUE(record->next(e));
  ASSERT_EQ(e.kind, record::Kind::plan);
  record::RecordedPlan other = *e.plan;
  other.policy.risk_permille = 4000;
  const std::string was = record::encode(*e.plan), is = record::encode(other);
  ASSERT_EQ(was.size(), is.size()) << "so that it can be put in the place of the other";
  for (std::size_t at = 0; at + was.size() <= tape.bytes.size(); ++at) {
    if (std::memcmp(tape.bytes.data() + at, was.data(), was.size()) != 0) continue;
    std::memcpy(tape.bytes.data() + at, is.data(), is.size());
    break;
  }
  const record::Replayed again = replayed(tape);
  EXPECT_NE(again.difference, "");
  EXPECT_LT(again.same, again.actions);
}

TEST(Record, ARingKeepsTheNewestAndEachSegmentSaysWhereItStands) {
  Scenario s = two_modules(true);
  Tape tape(4, 16 << 10);
  const Outcomes out = record_run(s, tape);
  auto record = record::Record::read(tape.bytes);
  ASSERT_TRUE(record.ok()) << record.error();
  EXPECT_EQ(record->segments(), 4u);
  record::Entry e;
  ASSERT_TRUE(record->next(e));
  EXPECT_EQ(e.kind, record::Kind::plan);
  std::uint64_t answers = 0;
  std::uint32_t streams = 0;
  TimeNs last = 0;
  for (bool more = true; more; more = record->next(e)) {
    EXPECT_GE(e.at_ns, last);
    last = e.at_ns;
    answers += e.kind == record::Kind::answer ? 1 : 0;
    streams += e.kind == record::Kind::stream && e.context ? 1 : 0;
  }
  EXPECT_EQ(record->problem(), "");
  EXPECT_EQ(streams, 3u * 4u);
  EXPECT_GT(answers, 0u);
  EXPECT_LT(answers, out.requests);
  auto again = record::replay(*record, papers::presets());
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().find("beginning"), std::string::npos) << again.error();
}

// A ring that has come round many times, whatever the load was: from the first state in it on, all is the same, and
// little of it lies before.
TEST(Record, ARingThatHasComeRoundIsReplayedFromItsFirstState) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Scenario s = two_modules(seed % 2 == 0);
    s.arrivals = load(700 + 300.0 * static_cast<double>(seed), 80 * kSecond, 3, seed);
    s.seed = seed;
    Tape tape(256, 10 << 10);
    const Outcomes out = record_run(s, tape);
    ASSERT_GT(tape.ring.newest(), 256u) << "it has not come round";
    auto record = record::Record::read(tape.bytes);
    ASSERT_TRUE(record.ok()) << record.error();
    auto again = record::replay(*record, papers::presets());
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(again->difference, "");
    EXPECT_EQ(again->same, again->actions);
    EXPECT_GT(again->actions, 4 * again->skipped);
    EXPECT_GT(again->before.submitted, 0u);
    EXPECT_EQ(again->total.submitted, out.counters.total.submitted);
    EXPECT_EQ(again->total.answered, out.counters.total.answered);
    EXPECT_EQ(again->total.reasons, out.counters.total.reasons);
  }
}

// A state of which a byte is wrong is none: the next one serves.
TEST(Record, ADamagedStateIsPassedOver) {
  Scenario s = two_modules(true);
  s.arrivals = load(1'200, 60 * kSecond, 3);
  Tape tape(256, 10 << 10);
  (void)record_run(s, tape);
  auto record = record::Record::read(tape.bytes);
  ASSERT_TRUE(record.ok()) << record.error();
  const auto whole = record::replay(*record, papers::presets());
  ASSERT_TRUE(whole.ok()) << whole.error();
  record->rewind();
  record::Entry e;
  while (record->next(e) && e.kind != record::Kind::state) {
  }
  ASSERT_EQ(e.kind, record::Kind::state);
  const_cast<std::byte&>(e.piece[e.piece.size() / 2]) ^= std::byte{1};  // of the record's own bytes
  const auto later = record::replay(*record, papers::presets());
  ASSERT_TRUE(later.ok()) << later.error();
  EXPECT_GT(later->from_ns, whole->from_ns);
  EXPECT_EQ(later->difference, "");
  EXPECT_EQ(later->same, later->actions);
}

TEST(Record, RecordingThatBeginsLaterBeginsWithAState) {
  core::Policy policy;
  ASSERT_TRUE(papers::preset("leat", policy));
  Tape tape;
  record::RecordedCore core(core::test::chain(1, 1, 4, kMs, 0, 500 * kMs), policy, {}, {.preset = "leat"});
  TimeNs now = 1;
  core.partition_ready(now, 0);
  const core::StreamId stream = core.open_stream(now, {.application = 0, .depth = 8});
  std::vector<core::BatchHandle> running;
  std::uint64_t token = 0;
  const auto serve = [&](int times) {
    for (int i = 0; i < times; ++i) {
      core.submit(now += kMs / 2, {.stream = stream, .token = ++token, .capture_ns = now});
      if (running.empty()) {
        for (core::Action a; core.next_action(a);)
          if (a.kind == core::ActionKind::dispatch) running.push_back(a.batch);
        continue;
      }
      core.stage_started(now, running[0], 0);
      (void)core.stage_finished(now += kMs, running[0], 0, {});
      running.clear();
      for (core::Action a; core.next_action(a);)
        if (a.kind == core::ActionKind::dispatch) running.push_back(a.batch);
    }
  };
  serve(101);
  core.record(&tape.ring, now);
  serve(200);
  core.record(nullptr, now);
  const record::Replayed again = replayed(tape);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.skipped, 0u);
  EXPECT_EQ(again.before.submitted, 101u);
  EXPECT_EQ(again.total.submitted, 301u);
  EXPECT_EQ(again.same, again.actions);
}

TEST(Record, FiveMinutesOfAThousandRequestsASecondAreAboutSixteenMebibytes) {
  Scenario s;
  s.topology = core::test::chain(1, 4, 8, 2 * kMs, kMs, 100 * kMs);
  s.streams.assign(8, {.depth = 64});
  s.arrivals = load(1'000, 20 * kSecond, 8);
  Tape tape(4);
  const Outcomes out = record_run(s, tape);
  auto record = record::Record::read(tape.bytes);
  ASSERT_TRUE(record.ok());
  const double each = static_cast<double>(record->bytes()) / static_cast<double>(out.requests);
  std::printf("%.1f bytes a request, in batches of %.2f\n", each,
              static_cast<double>(out.requests) / static_cast<double>(out.counters.modules[0].batches));
  EXPECT_LT(each * 300'000, 15 << 20) << "one of sixteen segments is being overwritten";
}

// LEAT_DAMAGES: how many (100 000 by hand).
TEST(Record, DamagedBytesAreRefusedOrReadWithinTheirBounds) {
  const char* const asked = std::getenv("LEAT_DAMAGES");
  const int damages = asked == nullptr ? 300 : std::atoi(asked);
  Scenario s = two_modules(true);
  s.arrivals.resize(200);
  Tape tape(4, 8 << 10);
  (void)record_run(s, tape);
  Random random(7);
  std::uint64_t entries = 0;
  for (int i = 0; i < damages; ++i) {
    std::vector<std::byte> bytes = tape.bytes;
    const std::uint64_t places = 1 + random.below(8);
    for (std::uint64_t k = 0; k < places; ++k) {
      const std::uint64_t segment = random.below(4) * (8 << 10);
      const std::uint64_t at = segment + (random.below(4) == 0 ? random.below(128) : random.below(8 << 10));
      bytes[at] = random.below(3) == 0 ? std::byte{0xff} : static_cast<std::byte>(random.below(256));
    }
    if (random.below(8) == 0) bytes.resize(random.below(bytes.size()));
    auto record = record::Record::read(std::move(bytes));
    if (!record.ok()) {
      EXPECT_FALSE(record.error().empty());
      continue;
    }
    record::Entry e;
    while (record->next(e)) ++entries;
  }
  EXPECT_GT(entries, 0u);
}

}  // namespace
}  // namespace leat::sim
