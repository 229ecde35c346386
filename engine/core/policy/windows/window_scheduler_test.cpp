// Modules that share partitions (window_scheduler.h).
#include "engine/core/test/test_bench.h"

namespace leat::core {
namespace {

using test::affine;
using test::Bench;
using test::chain;
using test::kMs;

// A request waits at both branches of a diamond: it could still pass the short one, which is looked at first, but not
// the long one, for whose sake it is given up.
TEST(Windows, ARequestGivenUpAtOneBranchIsNotStartedAtTheOther) {
  Topology t = chain(4, 1, 4, 5 * kMs, 0, 100 * kMs);
  t.partitions.resize(2);
  t.modules[0].after = {1, 2};
  t.modules[1].after = {3};
  t.modules[2].before = {0};
  t.modules[3].before = {1, 2};
  for (ModuleId m = 1; m < 4; ++m) t.routes[m].stages[0].pool = {1};
  t.routes[2].stages[0].latency = affine(50 * kMs, 0, 4);
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  Bench b(t, leat);
  const StreamId s = b.open({.depth = 10});
  b.core.partition_lost(1, 1);
  b.submit(s, 1);
  b.run_to(30 * kMs);
  b.submit(s, 2);
  b.run_to(70 * kMs);
  EXPECT_TRUE(b.answers.empty());
  b.core.partition_ready(b.now, 1);
  b.drain();
  b.run_to(200 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::dropped);
  EXPECT_EQ(b.answers[1].reason, Reason::unreachable);
  EXPECT_TRUE(b.core.idle());
}

// A head whose items are too late together, though one of them alone would not be, is late: where late is worth running
// it runs at once, and nobody has to come by to wake it.
TEST(Windows, WhetherAHeadIsLateIsAskedOfAllItsItems) {
  Topology t = chain(2, 1, 8, 5 * kMs, 5 * kMs, 50 * kMs);
  t.partitions.resize(1);
  t.routes[1].stages[0].pool = {0};
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  Bench b(t, leat);
  b.submit(b.open({.supersede = Supersede::never_drop}), 1, 8);
  b.run_to(1000 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::late);
  EXPECT_LE(b.answers[1].at, 56 * kMs);  // eight items, then the one that they become
}

// The token's hundreds are what a task takes (core::TaskSizes).
struct Hundreds final : TaskSizes {
  std::uint32_t units(std::uint64_t token, ModuleId, std::uint32_t) const noexcept override {
    return static_cast<std::uint32_t>(token / 100);
  }
};

// Another module on every partition, which nobody asks for: they are shared.
void share(Topology& t) {
  const auto m = static_cast<ModuleId>(t.modules.size());
  const auto route = static_cast<RouteId>(t.routes.size());
  t.applications.push_back({.slo_ns = 1000 * kMs, .modules = {m}});
  t.modules.push_back({.application = 1, .before = {}, .after = {}, .routes = {route}});
  RouteSpec spec{.module = m, .batch = 1, .stages = {{.pool = {}, .latency = affine(kMs, kMs, 1)}}};
  for (PartitionId p = 0; p < t.partitions.size(); ++p) spec.stages[0].pool.push_back(p);
  t.routes.push_back(spec);
}

// Of two partitions one takes batches of 4, and is the faster; the other takes 16. A task of 16 is not for the first,
// and does not keep it from the small ones that wait with it.
TEST(Windows, ALargeTaskWaitsForThePartitionThatTakesIt) {
  Topology t = chain(1, 1, 4, 1 * kMs, 1 * kMs, 200 * kMs);
  t.partitions.resize(2);
  t.modules[0].routes = {0, 1};
  t.routes.push_back({.module = 0, .batch = 16, .stages = {{.pool = {1}, .latency = affine(2 * kMs, 2 * kMs, 16)}}});
  share(t);
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  for (const bool late : {false, true}) {
    const Hundreds sizes;
    Bench b(t, leat);
    b.core.measure_tasks(sizes);
    const StreamId s = b.open({.slo_ns = late ? 20 * kMs : 200 * kMs,
                               .depth = 32,
                               .supersede = late ? Supersede::never_drop : Supersede::fifo});
    b.core.partition_lost(b.now, 1);
    for (std::uint64_t i = 0; i < 4; ++i) b.submit(s, 100 + i);
    b.submit(s, 1600);
    for (std::uint64_t i = 4; i < 8; ++i) b.submit(s, 100 + i);
    b.run_to(25 * kMs);
    if (late) b.submit(s, 108, 1, 6 * kMs);  // so late that nothing is in time
    b.run_to(30 * kMs);
    EXPECT_EQ(b.answers.size(), late ? 9U : 8U) << "every small one, by the fast partition";
    EXPECT_FALSE(b.answers.contains(1600));
    b.core.partition_ready(b.now, 1);
    b.drain();
    b.run_to(100 * kMs);
    ASSERT_TRUE(b.answers.contains(1600)) << late;
    EXPECT_EQ(b.answers[1600].outcome, late ? Outcome::late : Outcome::completed);
    EXPECT_EQ(b.answers[1600].at, 30 * kMs + 34 * kMs);
    EXPECT_EQ(b.sent.back().route, 1U);
  }
}

// Alone, as large as a batch, and too late as a whole: it runs where late is worth running, else it is given up; either
// way others go on.
TEST(Windows, ATaskAsLargeAsABatchIsStartedOrGivenUp) {
  Topology t = chain(1, 1, 16, 1 * kMs, 1 * kMs, 10 * kMs);
  share(t);
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  leat.canaries = false;
  for (const bool late : {false, true}) {
    const Hundreds sizes;
    Bench b(t, leat);
    b.core.measure_tasks(sizes);
    const StreamId s = b.open({.depth = 8, .supersede = late ? Supersede::never_drop : Supersede::fifo});
    b.submit(s, 1600);
    b.submit(s, 4000);  // larger than any batch: as large as one
    b.submit(s, 100);
    b.run_to(100 * kMs);
    ASSERT_EQ(b.answers.size(), 3U);
    EXPECT_EQ(b.answers[1600].outcome, late ? Outcome::late : Outcome::dropped);
    EXPECT_EQ(b.answers[4000].outcome, late ? Outcome::late : Outcome::dropped);
    if (late) continue;
    EXPECT_LT(b.answers[1600].at, 2 * kMs) << "at once, not when one unit would be too late too";
    EXPECT_EQ(b.answers[100].outcome, Outcome::completed);
  }
}

}  // namespace
}  // namespace leat::core
