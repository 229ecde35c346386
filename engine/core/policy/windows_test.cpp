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

}  // namespace
}  // namespace leat::core
