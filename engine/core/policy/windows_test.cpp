// Modules that share partitions (windows.h).
#include "engine/core/test_bench.h"

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

}  // namespace
}  // namespace leat::core
