#include "engine/core/model/schedulable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/core/test/test_bench.h"

namespace leat::core {
namespace {

using test::kMs;
using test::kUs;

Demand demand(const char* name, TimeNs period_ms, TimeNs max_age_ms, Priority priority, TimeNs run_us, TimeNs safe_us,
              std::vector<PartitionId> pool = {0}) {
  return {.name = name,
          .period_ns = period_ms * kMs,
          .max_age_ns = max_age_ms * kMs,
          .priority = priority,
          .run_ns = run_us * kUs,
          .safe_ns = safe_us * kUs,
          .pool = std::move(pool)};
}

// A detector, a pose and a depth model with a large language model beside them.
std::vector<Demand> scene(std::vector<PartitionId> large = {0}) {
  return {demand("det", 33, 66, Priority::protected_, 15'600, 19'600),
          demand("pose", 33, 66, Priority::high, 4'100, 5'700), demand("depth", 66, 132, Priority::high, 9'300, 11'500),
          demand("vlm", 500, 1500, Priority::background, 97'900, 110'000, std::move(large))};
}

TEST(Schedulable, PromisesOf103PercentAndAJobThatNeverFits) {
  const std::string names[] = {"gpu"};
  const auto found = obstacles(scene(), names, 1100);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].obstacle, Obstacle::broken_promises);
  EXPECT_NEAR(found[0].load, 1.1 * (19.6 / 33 + 5.7 / 33 + 11.5 / 66), 1e-9);
  EXPECT_THAT(found[0].text, testing::HasSubstr("103 % of partition gpu"));
  EXPECT_EQ(found[1].obstacle, Obstacle::block);
  EXPECT_THAT(found[1].demands, testing::ElementsAre(3, 0));
  EXPECT_THAT(found[1].text, testing::HasSubstr("'vlm' (97.9 ms) can never run beside 'det'"));
}

TEST(Schedulable, APartitionOfItsOwnRemovesTheBlock) {
  EXPECT_EQ(obstacles(scene({1}), {}, 1100).size(), 1U);
  EXPECT_TRUE(obstacles(scene({1}), {}, 1000).empty());
  EXPECT_TRUE(obstacles(scene({0, 1}), {}, 1000).empty()) << "it can go elsewhere";
}

TEST(Schedulable, OverloadIsOfThePartitionsThatTheWorkCanGoTo) {
  // 4 cameras of 19 ms every 33 ms: 230 % of one partition, 115 % of two, 77 % of three; in batches of four 57.5 %
  // each.
  std::vector<Demand> cameras = {{.name = "cam",
                                  .period_ns = 33 * kMs,
                                  .max_age_ns = 100 * kMs,
                                  .count = 4,
                                  .run_ns = 19 * kMs,
                                  .safe_ns = 19 * kMs,
                                  .pool = {0, 1}}};
  auto found = obstacles(cameras, {}, 1000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].obstacle, Obstacle::overload);
  EXPECT_NEAR(found[0].load, 4 * 19.0 / 33 / 2, 1e-9);
  cameras[0].item_ns = 10 * kMs;
  EXPECT_TRUE(obstacles(cameras, {}, 1000).empty());
  // Each pool has room for its own, the two together for 1.98 of 2; with a little more they have not.
  Demand one{
      .name = "a", .period_ns = 10 * kMs, .max_age_ns = 20 * kMs, .run_ns = 9 * kMs, .safe_ns = 9 * kMs, .pool = {0}};
  Demand both = one;
  both.pool = {1, 0};
  both.count = 1.2;
  EXPECT_TRUE(obstacles(std::vector<Demand>{one, both}, {}, 1000).empty());
  both.count = 1.3;
  found = obstacles(std::vector<Demand>{one, both}, {}, 1000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].load, (0.9 + 1.17) / 2, 1e-9);
  EXPECT_THAT(found[0].demands, testing::ElementsAre(0, 1));
}

TEST(Schedulable, TheEdgeOfNeverFits) {
  Demand d{.name = "cam", .period_ns = 30 * kMs, .max_age_ns = 60 * kMs, .run_ns = 10 * kMs, .pool = {0}};
  EXPECT_FALSE(never_fits(50 * kMs - 1, d));
  EXPECT_TRUE(never_fits(50 * kMs, d));
  d.max_age_ns = 29 * kMs;  // each result in its own frame's window, so no earlier than 10 ms into it
  EXPECT_FALSE(never_fits(40 * kMs - 1, d));
  EXPECT_TRUE(never_fits(40 * kMs, d));
}

}  // namespace
}  // namespace leat::core
