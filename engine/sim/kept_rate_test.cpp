// What of a promise is kept.
#include "engine/sim/kept_rate.h"

#include <gtest/gtest.h>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"

namespace leat::sim {
namespace {

using core::test::chain;
using core::test::kMs;

TEST(KeptRate, IsJustBelowWhatThePartitionsCanDo) {
  // One module of 10 ms alone, no batches, on eight partitions: 800 a second.
  const core::Topology t = chain(1, 8, 1, 5 * kMs, 5 * kMs, 200 * kMs);
  core::Policy policy;
  ASSERT_TRUE(core::preset("leat", policy));
  const double rate[] = {1000};
  const KeptRate kept = kept_rate(t, policy, rate);
  EXPECT_LT(kept.in_time, .85);
  EXPECT_GT(kept.part, .7);
  EXPECT_LE(kept.part, .82);
  EXPECT_GE(worst_in_time(t, policy, rate, kept.part), .99);
  const double half[] = {400};
  EXPECT_EQ(kept_rate(t, policy, half).part, 1);
}

TEST(KeptRate, IsNoneWhereTheSloIsTooShort) {
  const core::Topology t = chain(2, 1, 4, 50 * kMs, 5 * kMs, 60 * kMs);
  core::Policy policy;
  ASSERT_TRUE(core::preset("leat", policy));
  const double rate[] = {10};
  EXPECT_EQ(kept_rate(t, policy, rate, {.requests = 200}).part, 0);
}

}  // namespace
}  // namespace leat::sim
