// Coordinated streams through the core as it ships: the schedule, the gate, the batches, and who may disturb whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/coordination.h"
#include "engine/core/policy/policy_settings.h"
#include "engine/core/streams/strides.h"
#include "engine/sim/shown.h"
#include "engine/sim/simulator.h"
#include "leat/look_back.hpp"

namespace leat::sim {
namespace {

using core::PartitionId;

constexpr TimeNs kMs = 1'000'000, kPeriod = 16'666'667, kSecond = 1'000'000'000;
constexpr double kFlicker = 0.035;  // of detections, each way

const core::streams::StrideCurve& curve() {
  static const core::streams::StrideCurve c(0.006, 3);
  return c;
}

// Partitions that take 6 + 1.5 b ms, for one application of one module.
core::Topology machine(std::uint32_t partitions, std::uint32_t applications = 1) {
  core::Topology t;
  t.partitions.resize(partitions);
  for (std::uint32_t a = 0; a < applications; ++a) {
    core::RouteSpec route{.module = a, .batch = 32, .stages = {core::StageSpec{}}};
    for (int b = 1; b <= 32; ++b) {
      route.stages[0].latency.p50_ns.push_back(6 * kMs + b * 3 * kMs / 2);
      route.stages[0].latency.p99_ns.push_back(6 * kMs + b * 3 * kMs / 2);
    }
    for (PartitionId p = 0; p < partitions; ++p) route.stages[0].pool.push_back(p);
    t.routes.push_back(route);
    t.modules.push_back({.application = a, .routes = {a}});
    t.applications.push_back({.slo_ns = 200 * kMs, .modules = {a}});
  }
  return t;
}

core::Policy leat() {
  core::Policy p;
  EXPECT_TRUE(core::preset("leat", p));
  return p;
}

struct Play {
  Play(std::uint32_t clients, double slope, double sla, std::uint32_t partitions = 1, std::uint32_t applications = 1) {
    s.topology = machine(partitions, applications);
    s.policy = leat();
    s.limits.streams = s.limits.coordinated = 160;
    s.streams.clear();
    s.noise_permille = 10;
    s.check_every = 1;
    for (std::uint32_t i = 0; i < clients; ++i) {
      s.streams.push_back({.application = i % applications,
                           .depth = 8,
                           .supersede = core::Supersede::latest,
                           .terms = {.sla_drop = sla, .period_ns = kPeriod}});
      s.cameras.push_back({.stream = i,
                           .phase_ns = static_cast<TimeNs>(i) * 1'234'567 % kPeriod,
                           .seen = [slope](std::uint64_t, std::uint32_t stride) {
                             return std::hypot(kFlicker + slope * curve().at(stride), kFlicker);
                           }});
    }
    slopes.assign(clients, slope);
  }
  Outcomes run(double seconds) {
    s.cameras_until_ns = static_cast<TimeNs>(seconds * 1e9);
    std::vector<std::uint8_t> in(s.cameras.size());
    for (std::uint32_t c = 0; c < s.cameras.size(); ++c) {
      const double slope = slopes[c];
      shown.emplace_back(
          Shown::Film{.phase_ns = s.cameras[c].phase_ns,
                      .sla_drop = s.streams[s.cameras[c].stream].terms.sla_drop,
                      .from_ns = 3 * kSecond,
                      .extra = [slope](std::uint64_t, std::uint32_t stride) { return slope * curve().at(stride); }});
    }
    s.on_shown = [this, &in](const ShownEvent& e) {
      ++detections;
      if (in[e.camera] != 0) shown[e.camera].answer(e.at_ns, e.frame);  // not what was under way when it was evicted
    };
    s.on_schedule = [this, &in](TimeNs at, std::uint32_t camera, const core::StreamSchedule& told) {
      const bool is = told.view.standing == core::streams::Standing::admitted;
      if (!is && in[camera] != 0) shown[camera].evicted(at);
      in[camera] = is ? 1 : 0;
      last.resize(s.cameras.size());
      last[camera] = told;
    };
    s.on_run = [this](const RunEvent& e) {
      ++batches;
      items += e.items;
    };
    const Outcomes out = sim::run(s);
    for (Shown& each : shown) each.show(s.cameras_until_ns);
    return out;
  }
  [[nodiscard]] double kept(std::uint32_t first = 0) const {  // share of the seconds of clients from `first` on
    double kept = 0, all = 0;
    for (std::uint32_t c = first; c < shown.size(); ++c) kept += shown[c].kept(), all += shown[c].seconds();
    return all == 0 ? 0 : kept / all;
  }
  Scenario s;
  std::vector<double> slopes;
  std::vector<Shown> shown;
  std::vector<core::StreamSchedule> last;
  std::uint64_t detections = 0, batches = 0, items = 0;
};

TEST(Coordinated, TwelveClientsKeepTheirSlaWithATenthOfTheirFrames) {
  Play p(12, 0.004, 0.06);
  const Outcomes out = p.run(13);
  EXPECT_TRUE(out.drained);
  EXPECT_GE(p.kept(), 0.99);
  for (const Shown& each : p.shown) EXPECT_GE(each.seconds(), 9u);
  EXPECT_LT(p.detections, 12u * 13 * 60 / 8);
  // All but what the streams' own rule, latest, gives up for a newer frame.
  EXPECT_EQ(out.counters.total.of(Outcome::completed) + out.counters.total.of(Reason::superseded), out.requests);
  EXPECT_GE(out.goodput(), 0.99);
  EXPECT_EQ(out.counters.left_undecided, 0u);
}

TEST(Coordinated, FramesMeetInFullBatchesWhereThePartitionIsScarce) {
  Play p(120, 0.006, 0.03);
  const Outcomes out = p.run(13);
  EXPECT_GE(p.kept(), 0.97);
  EXPECT_GE(static_cast<double>(p.items) / static_cast<double>(p.batches), 4.0);
  EXPECT_GE(out.goodput(), 0.99);
  std::uint32_t admitted = 0;
  for (const auto& each : p.last) admitted += each.view.standing == core::streams::Standing::admitted ? 1 : 0;
  EXPECT_GE(admitted, 30u);
  EXPECT_LT(admitted, 120u);
}

TEST(Coordinated, ApplicationsThatShareAPartitionShareItsTime) {
  Play together(120, 0.006, 0.03, 1, 2);
  const Outcomes out = together.run(13);
  EXPECT_GE(together.kept(), 0.97);
  EXPECT_GE(out.goodput(), 0.99);
  std::array<std::uint32_t, 2> admitted{};
  for (std::uint32_t c = 0; c < together.last.size(); ++c)
    admitted[c % 2] += together.last[c].view.standing == core::streams::Standing::admitted ? 1 : 0;
  std::printf("admitted %u and %u, kept %.4f\n", admitted[0], admitted[1], together.kept());
  EXPECT_GE(admitted[0], 10u);
  EXPECT_GE(admitted[1], 10u);
}

TEST(Coordinated, ALiarAndOneThatStopsDisturbNobody) {
  Play p(10, 0.004, 0.06, 2);
  p.s.cameras[0].seen = [](std::uint64_t, std::uint32_t) { return 0.95; };
  p.s.streams[0].terms.max_share = 0.2;
  p.s.cameras[1].until_ns = 5 * kSecond;
  const Outcomes out = p.run(13);
  EXPECT_GE(p.kept(2), 0.99);
  EXPECT_LE(p.last[0].view.setting.load, 0.2 + 1e-9);
  EXPECT_EQ(p.last[1].view.standing, core::streams::Standing::silent);
  EXPECT_GE(out.goodput(), 0.99);
}

TEST(Coordinated, OrdinaryRequestsGoBesideThem) {
  Play p(8, 0.004, 0.06, 2);
  p.s.streams.push_back({.depth = 64});
  std::vector<TimeNs> times = poisson(60, 13 * kSecond, 5);
  p.s.arrivals = to_stream(times, 8);
  const Outcomes out = p.run(13);
  EXPECT_GE(p.kept(), 0.97);
  EXPECT_GE(out.goodput(), 0.99);
}

TEST(Coordinated, WhatWasNotAskedForWaitsForWhatWas) {
  Play p(8, 0.004, 0.06);
  // One of them floods besides: far more than the partition holds.
  p.s.streams[0].supersede = core::Supersede::fifo;
  std::vector<TimeNs> times;
  for (TimeNs at = 3 * kSecond; at < 13 * kSecond; at += 3 * kMs) times.push_back(at);
  p.s.arrivals = to_stream(times, 0);
  (void)p.run(13);
  EXPECT_GE(p.kept(1), 0.95);
}

TEST(Coordinated, APartitionIsLostAndComesBack) {
  Play p(10, 0.004, 0.06, 2);
  p.s.faults = {{.at_ns = 4 * kSecond, .kind = FaultKind::lose, .partition = 1},
                {.at_ns = 7 * kSecond, .kind = FaultKind::restore, .partition = 1},
                {.at_ns = 9 * kSecond, .kind = FaultKind::lose, .partition = 0},
                {.at_ns = 9 * kSecond, .kind = FaultKind::lose, .partition = 1},
                {.at_ns = 10 * kSecond, .kind = FaultKind::restore, .partition = 0}};
  const Outcomes out = p.run(14);
  EXPECT_TRUE(out.drained);
  EXPECT_GE(p.kept(), 0.75);  // nothing is answered in the tenth second
  for (const auto& each : p.last) EXPECT_EQ(each.view.standing, core::streams::Standing::admitted);
}

TEST(Coordinated, StreamsThatCannotBeCoordinatedAreRefused) {
  core::Topology t = machine(1);
  core::Scheduler with(t, leat(), {.coordinated = 1});
  EXPECT_TRUE(with.can_coordinate(0));
  const core::StreamConfig asks{.terms = {.sla_drop = 0.06, .period_ns = kPeriod}};
  const core::StreamId first = with.open_stream(0, asks);
  EXPECT_NE(first, core::kNone);
  EXPECT_EQ(with.open_stream(0, asks), core::kNone);  // one alone may be
  EXPECT_NE(with.open_stream(0, {}), core::kNone);
  EXPECT_FALSE(with.observe(1, first, {.stride = 4, .drop = 0.1}));  // no answer to speak of
  EXPECT_FALSE(with.observe(1, 77, {.stride = 4, .drop = 0.1}));
  with.close_stream(2, first, Reason::stream_closed);
  EXPECT_NE(with.open_stream(3, asks), core::kNone);
  core::Scheduler without(t, leat());
  EXPECT_EQ(without.open_stream(0, asks), core::kNone);
  EXPECT_EQ(without.next_timer(), core::kNever);
}

// One report of what tracking lost since the answer before for each answer, one of longer ago for three.
TEST(Coordinated, ReportsCountOnlyForAnswersThatCame) {
  core::Coordination c(machine(1), {.coordinated = 1});
  ASSERT_TRUE(c.open(0, 0, {.terms = {.sla_drop = 0.06, .period_ns = kPeriod}}));
  const core::Observation near{.stride = 4, .drop = 0.1}, far{.stride = 20, .drop = 0.2, .far = true};
  EXPECT_FALSE(c.observe(1, 0, near));
  EXPECT_FALSE(c.observe(1, 0, far));
  for (int i = 1; i < 3; ++i) {
    c.answered(i * kPeriod, 0, i * kPeriod - 1);
    EXPECT_TRUE(c.observe(i * kPeriod, 0, near));
    EXPECT_FALSE(c.observe(i * kPeriod, 0, near));
    EXPECT_FALSE(c.observe(i * kPeriod, 0, far));
  }
  c.answered(3 * kPeriod, 0, 3 * kPeriod - 1);
  EXPECT_TRUE(c.observe(3 * kPeriod, 0, far));
  EXPECT_FALSE(c.observe(3 * kPeriod, 0, far));
  for (int i = 4; i < 30; ++i) c.answered(i * kPeriod, 0, i * kPeriod - 1);
  EXPECT_TRUE(c.observe(30 * kPeriod, 0, far));
  EXPECT_FALSE(c.observe(30 * kPeriod, 0, far));  // not saved up
}

// However far apart its answers are, from the first on.
TEST(Coordinated, WhateverAClientLooksBackOnCounts) {
  for (std::uint32_t stride = 1; stride <= LookBack::kFarthest; ++stride) {
    core::Coordination c(machine(1), {.coordinated = 1});
    ASSERT_TRUE(c.open(0, 0, {.terms = {.sla_drop = 0.06, .period_ns = kPeriod}}));
    LookBack look;
    for (std::uint64_t frame = 0; frame < 400; frame += stride) {
      const auto now = static_cast<TimeNs>(frame + 1) * kPeriod;
      c.answered(now, 0, now - 1);
      if (const auto from = look.answered(frame)) {
        const auto back = static_cast<std::uint32_t>(frame - *from);
        EXPECT_TRUE(c.observe(now, 0, {.stride = back, .drop = 0.1, .far = true})) << stride << ' ' << frame;
      }
    }
  }
}

TEST(Coordinated, AnotherPlanTakesWhatIsHeldAlong) {
  Play p(10, 0.004, 0.06, 2);
  for (int i = 0; i < 3; ++i)
    p.s.replacements.push_back({.at_ns = (4 + i) * kSecond + 77 * kMs, .topology = p.s.topology});
  const Outcomes out = p.run(10);
  EXPECT_GE(p.kept(), 0.98);
  EXPECT_GE(out.goodput(), 0.99);
}

}  // namespace
}  // namespace leat::sim
