// Unequal partitions and unequal requests under the default preset: who takes what.
#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"

namespace leat::core {
namespace {

using test::Bench;
using test::kMs;

// Partition 0: 10 ms an item; partition 1: 2 ms an item. SLO 50 ms, batches up to 16.
Topology slow_and_fast() {
  Topology t;
  t.applications = {{.slo_ns = 50 * kMs, .rate_rps = 0, .modules = {0}}};
  t.modules = {ModuleSpec{.application = 0, .before = {}, .after = {}, .routes = {0, 1}}};
  t.routes = {RouteSpec{.module = 0,
                        .batch = 16,
                        .rate_rps = 0,
                        .stages = {StageSpec{.pool = {1}, .latency = test::affine(0, 2 * kMs, 16)}}},
              RouteSpec{.module = 0,
                        .batch = 16,
                        .rate_rps = 0,
                        .stages = {StageSpec{.pool = {0}, .latency = test::affine(0, 10 * kMs, 16)}}}};
  t.partitions.resize(2);
  return t;
}

Policy leat() {
  Policy p;
  EXPECT_TRUE(preset("leat", p));
  return p;
}

TEST(Fit, TheSlowestThatIsInTimeTakesIt) {
  Bench b(slow_and_fast(), leat());
  const StreamId s = b.open();
  b.submit(s, 1, 12);  // 120 ms on the slow one
  b.submit(s, 2, 3);   // 30 ms on the slow one
  ASSERT_EQ(b.sent.size(), 2u);
  EXPECT_EQ(b.sent[0].path[0], 1u);
  EXPECT_EQ(b.sent[1].path[0], 0u);
  b.run_to(100 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
  EXPECT_EQ(b.answers[2].outcome, Outcome::completed);
}

TEST(Fit, WhatDoesNotFitIsLookedPastNotDropped) {
  Bench b(slow_and_fast(), leat());
  const StreamId s = b.open();
  b.submit(s, 1, 12);  // fast: until 24 ms
  b.submit(s, 2, 2);   // slow: until 20 ms
  b.submit(s, 3, 10);  // waits: 100 ms on the slow one
  b.submit(s, 4, 3);   // 30 ms: ends at 50 ms when the slow one takes it past request 3
  b.run_to(200 * kMs);
  ASSERT_EQ(b.sent.size(), 4u);
  EXPECT_EQ(b.sent[2].tokens, std::vector<std::uint64_t>{4});
  EXPECT_EQ(b.sent[2].path[0], 0u);
  EXPECT_EQ(b.sent[3].tokens, std::vector<std::uint64_t>{3});
  EXPECT_EQ(b.sent[3].path[0], 1u);
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(b.answers[i].outcome, Outcome::completed) << i;
}

TEST(Fit, ABatchOfUnequalRequestsGrowsWhileAllAreInTime) {
  Topology t = slow_and_fast();
  t.modules[0].routes = {0};  // the fast partition alone
  t.routes.resize(1);
  Bench b(t, leat());
  const StreamId s = b.open();
  b.submit(s, 1, 10);  // until 20 ms
  b.now = 5 * kMs;
  b.submit(s, 2, 12);  // deadline 55: alone until 44
  b.submit(s, 3, 8);   // together until 60: late
  b.run_to(200 * kMs);
  ASSERT_EQ(b.sent.size(), 2u);
  ASSERT_EQ(b.sent[1].tokens.size(), 1u);
  const std::uint64_t ran = b.sent[1].tokens[0];
  EXPECT_EQ(b.answers[ran].outcome, Outcome::completed);
  EXPECT_EQ(b.answers[5 - ran].outcome, Outcome::dropped) << "nobody could do the other in time as well";
}

TEST(Fit, BatchesOfOneRequest) {
  for (const bool one_request : {false, true}) {
    Policy policy = leat();
    policy.variant.one_request = one_request;
    Bench b(slow_and_fast(), policy);
    const StreamId s = b.open();
    b.submit(s, 1, 12);
    b.submit(s, 2, 4);  // slow: until 40 ms
    for (std::uint64_t i = 3; i <= 5; ++i) b.submit(s, i, 2);
    b.run_to(200 * kMs);
    EXPECT_EQ(b.sent.size(), one_request ? 5u : 3u);
  }
}

}  // namespace
}  // namespace leat::core
