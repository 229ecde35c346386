// Tables that are wrong heal, and tables that are right cost nothing: with each scheduler (canary.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"
#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

using core::test::affine;
using core::test::kMs;

enum class With { queues, windows, reservations };

// Two applications. The first one's table is to be wrong; the second one's is right. With windows and reservations they
// share all partitions; queues have partitions of their own.
constexpr TimeNs kRun = 16 * kMs, kOther = 4 * kMs;

core::Topology world(With with, double times, TimeNs slo) {
  core::Topology t;
  const auto first = static_cast<TimeNs>(static_cast<double>(kRun) * times);
  const TimeNs runs[] = {std::max<TimeNs>(1, first), kOther};
  for (std::uint32_t m = 0; m < 2; ++m) {
    t.applications.push_back({.slo_ns = m == 0 ? slo : 100 * kMs, .modules = {m}});
    t.modules.push_back({.application = m, .before = {}, .after = {}, .routes = {m}});
    core::RouteSpec route{.module = m, .batch = 4, .rate_rps = 20, .stages = {}};
    const std::uint32_t stages = with == With::reservations ? 2 : 1;
    for (std::uint32_t k = 0; k < stages; ++k) {
      const TimeNs each = runs[m] / stages;
      route.stages.push_back({.pool = {}, .latency = affine(each * 3 / 4, each / 4, 4)});
      const std::uint32_t from = with == With::queues ? 2 * m : 2 * k;
      route.stages.back().pool = {from, from + 1};
    }
    t.routes.push_back(route);
  }
  t.partitions.resize(with == With::windows ? 2 : 4);
  return t;
}

struct Seen {
  double first = 0, second = 0;     // parts in time, of what came after five seconds; of all
  std::uint64_t runs = 0;           // of the first
  TimeNs took = 0;                  // by them, on the busiest partition
  std::uint32_t max_in_second = 0;  // of the first one's runs begun within one second
};

// Ten seconds: the first application's stream at 15 frames a second, the second one's at 30.
Seen see(With with, double times, bool canaries, TimeNs slo = 40 * kMs, bool alone = false, bool periodic = false,
         double truth = 1) {
  Scenario s;
  core::Topology reality = world(with, truth, slo);
  s.topology = world(with, times, slo);
  for (core::Topology* t : {&s.topology, &reality}) {
    if (!periodic) break;
    t->partitions.resize(1);
    for (core::RouteSpec& r : t->routes) r.stages[0].pool = {0};
  }
  s.reality = &reality;
  EXPECT_TRUE(core::preset("leat", s.policy));
  s.policy.canaries = canaries;
  s.streams = {{.application = 0, .depth = 8}, {.application = 1, .depth = 8}};
  if (periodic) {
    s.streams[0].period_ns = 67 * kMs, s.streams[1].period_ns = 33 * kMs;
    s.streams[1].priority = core::Priority::high;
    for (core::StreamConfig& stream : s.streams) stream.supersede = core::Supersede::latest;
  }
  for (TimeNs at = 0; at < 10'000 * kMs && !alone; at += 67 * kMs) s.arrivals.push_back({.at_ns = at, .stream = 0});
  for (TimeNs at = 11 * kMs; at < 10'000 * kMs; at += 33 * kMs) s.arrivals.push_back({.at_ns = at, .stream = 1});
  std::ranges::stable_sort(s.arrivals, {}, &Arrival::at_ns);
  s.check_every = 1;
  std::uint64_t late_first = 0, first = 0, second = 0, all_second = 0;
  s.on_answer = [&](const AnswerEvent& a) {
    const bool in_time = a.outcome == Outcome::completed;
    const Arrival& arrival = s.arrivals[a.arrival];
    if (arrival.stream == 1) {
      ++all_second;
      second += in_time ? 1 : 0;
    } else if (arrival.at_ns >= 5'000 * kMs) {
      ++late_first;
      first += in_time ? 1 : 0;
    }
  };
  Seen out;
  std::vector<TimeNs> starts;
  std::map<core::PartitionId, TimeNs> took;
  s.on_run = [&](const RunEvent& r) {
    if (r.route != 0) return;
    took[r.partition] += r.end_ns - r.start_ns;
    if (r.stage == 0) starts.push_back(r.start_ns);
  };
  const Outcomes outcomes = run(s);
  EXPECT_TRUE(outcomes.drained);
  std::ranges::sort(starts);
  for (std::size_t i = 0, j = 0; i < starts.size(); ++i) {
    while (starts[i] - starts[j] >= 1'000 * kMs) ++j;
    out.max_in_second = std::max(out.max_in_second, static_cast<std::uint32_t>(i - j + 1));
  }
  for (const auto& [p, ns] : took) out.took = std::max(out.took, ns);
  out.runs = starts.size();
  out.first = late_first == 0 ? 1 : static_cast<double>(first) / static_cast<double>(late_first);
  out.second = static_cast<double>(second) / static_cast<double>(all_second);
  return out;
}

class Canary : public testing::TestWithParam<With> {};

// Cameras of two classes on one partition, which look-ahead plans.
TEST(CanaryOfCameras, WhatLookAheadBelievesIsHealedToo) {
  const double before = see(With::windows, 1, true, 40 * kMs, true, true).second;
  EXPECT_EQ(see(With::windows, 5, false, 40 * kMs, false, true).first, 0);
  const Seen seen = see(With::windows, 5, true, 40 * kMs, false, true);
  EXPECT_GE(seen.first, .9);
  EXPECT_GE(seen.second, .99 * before);
}

TEST_P(Canary, ATableThatIsTooHighIsHealed) {
  const double before = see(GetParam(), 1, true, 40 * kMs, true).second;
  for (const double times : {3.0, 5.0, 16.0}) {
    SCOPED_TRACE(times);
    EXPECT_EQ(see(GetParam(), times, false).first, 0) << "else there is nothing to heal";
    const Seen seen = see(GetParam(), times, true);
    EXPECT_GE(seen.first, .9);
    EXPECT_GE(seen.second, .99 * before);
  }
}

TEST_P(Canary, ATableThatIsRightOrTooLowIsLeftAlone) {
  for (const double times : {1.0, .2}) {
    SCOPED_TRACE(times);
    const Seen with = see(GetParam(), times, true), without = see(GetParam(), times, false);
    EXPECT_GE(with.first, without.first);
    EXPECT_GE(with.second, without.second);
  }
}

// No frame can ever be in time: what is tried is bounded by count and by time, and the other stream keeps what it has.
TEST_P(Canary, WhatIsTrulyTooSlowIsTriedSeldom) {
  for (const TimeNs slo : {15 * kMs, 2 * kMs}) {
    const Seen seen = see(GetParam(), 1, true, slo);
    EXPECT_GT(seen.runs, 0u);
    EXPECT_LE(seen.max_in_second, 4u);
    EXPECT_LE(seen.took, 500 * kMs);
    EXPECT_LE(seen.runs, 8u) << "each in a row is waited for twice as long";
    EXPECT_GE(seen.second, .99);
  }
}

TEST_P(Canary, WhatTakesLongIsTriedTheMoreSeldom) {
  constexpr double kTimes = 12.5;
  const TimeNs run = 200 * kMs;
  const Seen seen = see(GetParam(), kTimes, true, 50 * kMs, false, false, kTimes);
  EXPECT_GT(seen.runs, 0u);
  EXPECT_LE(seen.took, 500 * kMs + run / (GetParam() == With::reservations ? 2 : 1)) << "a twentieth, and one more";
  EXPECT_GE(seen.second, .97);
}

INSTANTIATE_TEST_SUITE_P(With, Canary, testing::Values(With::queues, With::windows, With::reservations),
                         [](const auto& test) {
                           return test.param == With::queues    ? "queues"
                                  : test.param == With::windows ? "windows"
                                                                : "reservations";
                         });

}  // namespace
}  // namespace leat::sim
