// Admission and eviction: partition by partition, and for what a plan can help.
#include <gtest/gtest.h>

#include "engine/core/streams/test_world.h"

namespace leat::core::streams {
namespace {

std::uint32_t evictions(const World& w) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < w.slopes.size(); ++i) sum += w.c.view(i).evictions;
  return sum;
}

TEST(Tick, APartitionThatEvictsDoesNotKeepAnotherFromAdmitting) {
  World w(std::vector<BatchTimes>{{profile(6, 1.5), {}}, {{}, profile(6, 1.5)}}, {});
  for (int i = 0; i < 120; ++i) w.add(0.006, {.sla_drop = 0.03});
  w.run(8 * kSecond);
  const std::uint32_t before = evictions(w);
  for (double& each : w.slopes) each *= 2;
  while (evictions(w) == before && w.now < 12 * kSecond) w.run(w.now + 200'000'000);
  ASSERT_GT(evictions(w), before);
  const std::uint32_t other = w.add(0.004, {.module = 1});
  w.run(w.now + 200'000'000);
  EXPECT_TRUE(w.c.admitted(other));
}

TEST(Tick, FourPartitionsHoldFourTimesWhatOneDoes) {
  std::uint32_t held[2] = {};
  for (const std::size_t partitions : {1, 4}) {
    World w(partitions, {});
    for (std::size_t i = 0; i < 60 * partitions; ++i)
      w.add(0.005 + 0.001 * static_cast<double>(i % 5), {.sla_drop = 0.03});
    w.run(20 * kSecond);
    held[partitions / 4] = w.c.admitted_streams();
  }
  EXPECT_GT(held[0], 15u);
  EXPECT_LT(held[0], 60u);
  EXPECT_GE(held[1] + 4, 4 * held[0]);
}

TEST(Tick, AGroupThatHasNoRoomForOneOfItsModelsKeepsNobodyElseWaiting) {
  World w(std::vector<BatchTimes>{{profile(6, 1.5), {}}, {{}, profile(6, 1.5)}}, {});
  for (int i = 0; i < 120; ++i) w.add(0.008, {.sla_drop = 0.03, .module = 1});
  w.run(8 * kSecond);
  std::vector<std::uint32_t> tasks;
  for (std::uint64_t group = 1; group <= 6; ++group) {  // whichever of its models is looked at first
    const std::uint32_t first = group % 2;
    for (const std::uint32_t module : {first, 1 - first})
      tasks.push_back(w.add(0.02, {.sla_drop = 0.03, .module = module, .weight = 5, .group = group}));
  }
  w.run(w.now + 400'000'000);
  for (const std::uint32_t each : tasks) ASSERT_FALSE(w.c.admitted(each)) << each;
  const std::uint32_t single = w.add(0.004, {.sla_drop = 0.03, .module = 0});
  w.run(w.now + 400'000'000);
  EXPECT_TRUE(w.c.admitted(single));
}

// Of an interval nearly as long as a plan only the end may be counted, where most is lost.
TEST(Tick, LongIntervalsAreJudgedAsAWhole) {
  World w(1, {}, profile(12, 4));
  for (int i = 0; i < 250; ++i) w.add(0.0016, {.sla_drop = 0.1});
  for (int round = 1; round <= 12; ++round) {
    w.run((2 * round + 1) * kSecond);
    for (std::uint32_t i = 0; i < 250; ++i) w.slopes[i] = (i + round) % 4 == 0 ? 0.0026 : 0.0014;
  }
  EXPECT_GT(w.c.admitted_streams(), 40u);
  EXPECT_LT(evictions(w), 20u);
}

}  // namespace
}  // namespace leat::core::streams
