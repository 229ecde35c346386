// Plans that take over under load, one after the other: split models, coordinated streams, several users, applications
// that come, go, and are followed by others. Nobody is answered twice or not at all, nothing fails for it, and what is
// in time stays so. LEAT_SWAPS: how many (10 000 by hand).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/scheduler.h"
#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

using core::ModuleId;
using core::PartitionId;
using core::StreamId;

constexpr TimeNs kMs = 1'000'000, kSecond = 1'000'000'000, kPeriod = 33'333'333;
constexpr std::uint32_t kPartitions = 6;

core::StageSpec stage(std::vector<PartitionId> pool, TimeNs base_ns, TimeNs each_ns, std::int64_t bytes = 0) {
  core::StageSpec out{.pool = std::move(pool), .latency = {}, .transfer_bytes = bytes};
  for (int b = 1; b <= 8; ++b) {
    out.latency.p50_ns.push_back(base_ns + b * each_ns);
    out.latency.p99_ns.push_back(base_ns + b * each_ns);
  }
  return out;
}

// Three applications of one module: one cut into two stages, one whose streams are coordinated, one of two users.
core::Topology plan(std::vector<core::StageSpec> cut, std::vector<PartitionId> seen, std::vector<PartitionId> shared) {
  core::Topology t;
  t.partitions.resize(kPartitions);
  for (std::uint32_t a = 0; a < 3; ++a) {
    t.modules.push_back({.application = a, .routes = {a}});
    t.applications.push_back({.slo_ns = 200 * kMs, .modules = {a}});
  }
  t.routes.push_back({.module = 0, .batch = 8, .rate_rps = 300, .stages = std::move(cut)});
  t.routes.push_back({.module = 1, .batch = 8, .rate_rps = 300, .stages = {stage(std::move(seen), 5 * kMs, kMs)}});
  t.routes.push_back({.module = 2, .batch = 8, .rate_rps = 300, .stages = {stage(std::move(shared), 6 * kMs, kMs)}});
  return t;
}

std::vector<core::Topology> plans() {
  return {plan({stage({0, 1}, 4 * kMs, kMs, 1000), stage({2, 3}, 4 * kMs, kMs)}, {4, 5}, {4, 5}),
          plan({stage({2, 3}, 4 * kMs, kMs, 1000), stage({0, 1}, 4 * kMs, kMs)}, {4, 5}, {4, 5}),
          plan({stage({0, 1, 4, 5}, 8 * kMs, 2 * kMs)}, {2, 3}, {2, 3}),
          plan({stage({0, 1, 2}, 8 * kMs, 2 * kMs)}, {3, 4, 5}, {3, 4, 5})};
}

Scenario load(TimeNs length) {
  Scenario s;
  s.topology = plans().front();
  EXPECT_TRUE(core::preset("leat", s.policy));
  s.limits.partitions = kPartitions;
  s.limits.coordinated = 8;
  s.noise_permille = 20;
  s.check_every = 499;
  s.streams.clear();
  s.streams.push_back({.application = 0, .depth = 64});
  for (std::uint32_t user : {1u, 2u}) s.streams.push_back({.application = 2, .depth = 64, .user = user});
  for (std::uint32_t c = 0; c < 4; ++c) {
    s.cameras.push_back({.stream = static_cast<StreamId>(s.streams.size()),
                         .phase_ns = c * 7 * kMs,
                         .seen = [](std::uint64_t, std::uint32_t stride) { return 0.035 + 0.002 * stride; }});
    s.streams.push_back({.application = 1,
                         .depth = 8,
                         .supersede = core::Supersede::latest,
                         .user = 1 + c % 2,
                         .terms = {.sla_drop = 0.06, .period_ns = kPeriod}});
  }
  s.cameras_until_ns = length;
  for (std::uint32_t stream = 0; stream < 3; ++stream)
    for (TimeNs at = stream * kMs; at < length; at += 3 * kMs + stream * kMs)
      s.arrivals.push_back({.at_ns = at, .stream = stream});
  std::ranges::sort(s.arrivals, {}, &Arrival::at_ns);
  return s;
}

TEST(Replace, PlanAfterPlanUnderLoad) {
  const char* const asked = std::getenv("LEAT_SWAPS");
  const int swaps = asked == nullptr ? 200 : std::atoi(asked);
  constexpr TimeNs kEvery = 20 * kMs;
  const TimeNs length = (swaps + 50) * kEvery;
  const std::vector<core::Topology> all = plans();
  Scenario s = load(length);
  const Outcomes still = run(s);
  for (int i = 0; i < swaps; ++i)
    s.replacements.push_back(
        {.at_ns = kSecond / 2 + i * kEvery, .topology = all[static_cast<std::size_t>(i + 1) % all.size()]});
  const Outcomes moved = run(s);
  for (const Outcomes* out : {&still, &moved}) {
    EXPECT_TRUE(out->drained);
    EXPECT_TRUE(out->counters.total.balanced());
    EXPECT_EQ(out->counters.total.of(Outcome::failed), 0u);
    EXPECT_EQ(out->counters.left_undecided, 0u);
  }
  EXPECT_GE(moved.goodput(), still.goodput() - 0.003);
  std::printf("in time: %.3f %% without, %.3f %% with %d plans\n", 100 * still.goodput(), 100 * moved.goodput(), swaps);
}

// ---- applications by themselves, without a driver ----

core::Topology served(std::uint32_t applications) {
  core::Topology t;
  t.partitions.resize(3);
  for (std::uint32_t a = 0; a < applications; ++a) {
    t.modules.push_back({.application = a, .routes = {a}});
    t.applications.push_back({.slo_ns = 200 * kMs, .modules = {a}});
    t.routes.push_back({.module = a, .batch = 4, .stages = {stage({a % 2}, 5 * kMs, kMs)}});
  }
  return t;
}

struct Driven {
  explicit Driven(const core::Topology& t)
      : core(t, policy(),
             {.streams = 8,
              .requests = 64,
              .tasks = 64,
              .batches = 16,
              .actions = 64,
              .applications = 4,
              .modules = 8}) {
    core.partition_ready(now, 0);
    core.partition_ready(now, 1);
  }
  static core::Policy policy() {
    core::Policy p;
    EXPECT_TRUE(core::preset("leat", p));
    return p;
  }
  void replace(const core::Topology& t) {
    ASSERT_TRUE(core.same_requests(t));
    core::ReadyPlanPtr plan = core.prepare(t);
    ASSERT_TRUE(core.replace(++now, plan));
    take();
    core.audit();
  }
  void submit(StreamId s, std::uint64_t token) {
    core::Submission submission{.stream = s, .token = token, .capture_ns = ++now};
    (void)core.submit(now, submission);
    take();
  }
  void take() {
    core::Action a;
    while (core.next_action(a)) {
      if (a.kind == core::ActionKind::answer) answered[a.token] = a.outcome;
      if (a.kind != core::ActionKind::dispatch) continue;
      running.push_back({a.batch, a.module});
      for (const core::TaskRef& t : a.tasks) module_of[t.token] = a.module;
      core.stage_started(now, a.batch, 0);
    }
  }
  void end_all() {
    while (!running.empty()) {
      const auto [batch, module] = running.front();
      running.erase(running.begin());
      now += 10 * kMs;
      core.stage_finished(now, batch, 0, {});
      take();
      core.audit();
    }
  }
  TimeNs now = kSecond;
  core::Scheduler core;
  std::vector<std::pair<core::BatchHandle, ModuleId>> running;
  std::map<std::uint64_t, Outcome> answered;
  std::map<std::uint64_t, ModuleId> module_of;
};

TEST(Replace, AStreamGoesToItsHeirAndItsRequestsEndAsWhatTheyBegan) {
  Driven d(served(1));
  const StreamId s = d.core.open_stream(d.now, {.application = 0, .depth = 16});
  d.submit(s, 1);  // runs
  d.submit(s, 2);  // waits
  core::Topology both = served(2);
  both.applications[0].heir = 1;
  d.replace(both);
  d.submit(s, 3);
  EXPECT_EQ(d.core.in_flight(0), 2u);
  EXPECT_EQ(d.core.in_flight(1), 1u);
  d.end_all();
  EXPECT_EQ(d.module_of, (std::map<std::uint64_t, ModuleId>{{1, 0}, {2, 0}, {3, 1}}));
  for (const std::uint64_t token : {1, 2, 3}) EXPECT_EQ(d.answered[token], Outcome::completed);
  EXPECT_EQ(d.core.in_flight(0), 0u);
}

TEST(Replace, ANumberIsUsedAgainByAnApplicationOfAnotherShape) {
  Driven d(served(2));
  const StreamId s = d.core.open_stream(d.now, {.application = 1, .depth = 16});
  core::Topology without = served(2);
  without.applications[0].retired = true;
  without.routes[0].stages[0].pool = {2};  // where nobody is
  d.replace(without);
  core::Topology another = served(2);
  another.modules[0].fan_out_cap = 3;
  core::Topology wrong = another;
  wrong.modules[1].fan_out_cap = 2;
  EXPECT_FALSE(d.core.same_requests(wrong)) << "it is served";
  d.replace(another);
  const StreamId new_stream = d.core.open_stream(d.now, {.application = 0, .depth = 16});
  d.submit(s, 1);
  d.submit(new_stream, 2);
  d.end_all();
  EXPECT_EQ(d.answered[1], Outcome::completed);
  EXPECT_EQ(d.answered[2], Outcome::completed);
}

TEST(Replace, WhatIsLeftOfAnApplicationThatGoesFails) {
  Driven d(served(2));
  const StreamId s = d.core.open_stream(d.now, {.application = 0, .depth = 16});
  for (std::uint64_t token = 1; token <= 3; ++token) d.submit(s, token);
  core::Topology without = served(2);
  without.applications[0].retired = true;
  without.routes[0].stages[0].pool = {2};
  d.replace(without);
  d.core.give_up(++d.now, 0, Reason::not_ready);
  d.take();
  d.end_all();
  for (const std::uint64_t token : {1, 2, 3}) EXPECT_EQ(d.answered[token], Outcome::failed);
  EXPECT_EQ(d.core.in_flight(0), 0u);
}

TEST(Replace, MoreApplicationsThanThereIsRoomForAreRefused) {
  Driven d(served(2));
  EXPECT_TRUE(d.core.same_requests(served(4)));
  EXPECT_FALSE(d.core.same_requests(served(5)));
  EXPECT_FALSE(d.core.same_requests(served(1)));
}

}  // namespace
}  // namespace leat::sim
