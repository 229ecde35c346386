// Harpagon's dispatch (its figure 4): 8 requests per second on A and B (batch 6, 2 s) and C (batch 2, 1 s).
#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"

namespace leat::papers {
namespace {

using namespace core;
using test::Bench;
using test::kMs;
using test::kUs;

constexpr TimeNs kGap = 125 * kMs, kBound = 2750 * kMs;  // 8 per second; 2.0 + 6 / 8 s

LatencyTable flat(TimeNs ns, std::size_t batch) {
  return {.p50_ns = std::vector<TimeNs>(batch, ns), .p99_ns = std::vector<TimeNs>(batch, ns)};
}

Topology figure4() {
  Topology t;
  t.applications = {{.slo_ns = kBound, .rate_rps = 8, .modules = {0}}};
  t.modules = {ModuleSpec{.application = 0, .before = {}, .after = {}, .budget_ns = kBound, .routes = {0, 1}}};
  t.routes = {
      RouteSpec{.module = 0,
                .batch = 6,
                .rate_rps = 6,
                .stages = {StageSpec{.pool = {0, 1}, .latency = flat(2000 * kMs, 6)}}},
      RouteSpec{
          .module = 0, .batch = 2, .rate_rps = 2, .stages = {StageSpec{.pool = {2}, .latency = flat(1000 * kMs, 2)}}}};
  t.partitions.resize(3);
  return t;
}

TEST(TcDispatch, Figure4) {
  Policy p;
  ASSERT_TRUE(papers::preset("harpagon", p));
  Bench b(figure4(), p);
  const StreamId s = b.open({.depth = 100});
  const std::uint64_t requests = 160;
  TimeNs first = 0;
  for (std::uint64_t i = 1; i <= requests; ++i) {
    b.run_to(1 + kGap * static_cast<TimeNs>(i));
    if (i == 1) first = b.now;
    b.submit(s, i);
  }
  b.run_to(first + kGap * static_cast<TimeNs>(requests) + 20'000 * kMs);
  // The first sixteen: 1-6 to A, 7-12 to B, 13-16 to C.
  std::vector<PartitionId> where(requests + 1);
  for (const test::Running& r : b.sent)
    for (std::uint64_t token : r.tokens) where[token] = r.path[0];
  for (std::uint64_t i = 1; i <= 16; ++i) EXPECT_EQ(where[i], i <= 6 ? 0u : i <= 12 ? 1u : 2u) << i;
  // Theorem 1: nobody waits longer than 2.75 s.
  for (std::uint64_t i = 1; i <= requests; ++i) {
    ASSERT_TRUE(b.answers.contains(i));
    EXPECT_EQ(b.answers[i].outcome, Outcome::completed) << i;
    EXPECT_LE(b.answers[i].at - (first + kGap * static_cast<TimeNs>(i - 1)), kBound) << i;
  }
}

// As section III-B prints it: the first sixteen as in the figure, and so on every two seconds.
TEST(TcDispatch, Figure4AsPrinted) {
  Policy p;
  ASSERT_TRUE(papers::preset("harpagon-printed", p));
  Bench b(figure4(), p);
  const StreamId s = b.open({.depth = 100});
  const std::uint64_t requests = 160;
  for (std::uint64_t i = 1; i <= requests; ++i) {
    b.run_to(1 + kGap * static_cast<TimeNs>(i));
    b.submit(s, i);
  }
  b.run_to(kGap * static_cast<TimeNs>(requests) + 20'000 * kMs);
  std::vector<PartitionId> where(requests + 1);
  for (const test::Running& r : b.sent)
    for (std::uint64_t token : r.tokens) where[token] = r.path[0];
  for (std::uint64_t i = 1; i <= requests; ++i) {
    const std::uint64_t turn = (i - 1) % 16;
    EXPECT_EQ(where[i], turn < 6 ? 0u : turn < 12 ? 1u : 2u) << i;
    ASSERT_TRUE(b.answers.contains(i));
    EXPECT_LE(b.answers[i].at - kGap * static_cast<TimeNs>(i), kBound + 1) << i;
  }
}

// A batch sent short at its last safe moment ends its turn: the next one starts a batch of its own.
TEST(TcDispatch, AShortBatchEndsItsTurn) {
  Policy p;
  ASSERT_TRUE(papers::preset("harpagon", p));
  Bench b(figure4(), p);
  const StreamId s = b.open({.depth = 100});
  for (std::uint64_t i = 1; i <= 4; ++i) b.submit(s, i);
  b.run_to(10'000 * kMs);
  for (std::uint64_t i = 5; i <= 10; ++i) b.submit(s, i);
  b.run_to(20'000 * kMs);
  ASSERT_EQ(b.sent.size(), 2u);
  EXPECT_EQ(b.sent[0].tokens.size(), 4u);
  EXPECT_EQ(b.sent[1].tokens.size(), 6u);
}

// Eight machines filled in a row would leave the ninth without a request for longer than it may collect: they are
// spread.
TEST(TcDispatch, MachinesOfARouteAreSpreadWhereARowWouldStarveAnother) {
  constexpr TimeNs kSlow = 123'000 * kUs, kQuick = 52'500 * kUs, kBudget = 136'454 * kUs,
                   kApart = 1'681'803;  // 594.6 per second
  Topology t;
  t.applications = {{.slo_ns = kBudget, .rate_rps = 594.6, .modules = {0}}};
  t.modules = {ModuleSpec{.application = 0, .before = {}, .after = {}, .budget_ns = kBudget, .routes = {0, 1}}};
  t.routes = {RouteSpec{.module = 0,
                        .batch = 8,
                        .rate_rps = 8 * 8 / .123,
                        .stages = {StageSpec{.pool = {0, 1, 2, 3, 4, 5, 6, 7}, .latency = flat(kSlow, 8)}}},
              RouteSpec{.module = 0,
                        .batch = 4,
                        .rate_rps = 594.6 - 8 * 8 / .123,
                        .stages = {StageSpec{.pool = {8}, .latency = flat(kQuick, 4)}}}};
  t.partitions.resize(9);
  for (PartitionId p = 0; p < 8; ++p) t.partitions[p].price = 0.5;  // the better ratio
  Policy p;
  ASSERT_TRUE(papers::preset("harpagon", p));
  Bench b(t, p);
  const StreamId s = b.open({.depth = 4096});
  const std::uint64_t requests = 1000;
  for (std::uint64_t i = 1; i <= requests; ++i) {
    b.run_to(1 + kApart * static_cast<TimeNs>(i));
    b.submit(s, i);
  }
  b.run_to(1 + kApart * static_cast<TimeNs>(requests) + 1000 * kMs);
  for (std::uint64_t i = 1; i + 100 <= requests; ++i) {
    ASSERT_TRUE(b.answers.contains(i));
    EXPECT_LE(b.answers[i].at - (1 + kApart * static_cast<TimeNs>(i)), kBudget) << i;
  }
}

}  // namespace
}  // namespace leat::papers
