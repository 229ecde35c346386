#include "bench/coordinated/real_footage.h"

#include <gtest/gtest.h>

#include <cmath>

namespace leat::bench {
namespace {

// A box that flickers by a pixel and is missed for two frames, one of a single frame, and one that is gone by and by.
TEST(SmoothedOverTime, KeepsWhatStaysAndLeavesOutWhatFlickers) {
  std::vector<std::vector<TrackedBox>> detected(40);
  const auto place = [](std::size_t f) { return 10 + 2 * static_cast<float>(f); };
  for (std::size_t f = 0; f < 40; ++f) {
    const float flicker = f % 2 == 0 ? 1.0f : -1.0f;
    if (f != 20 && f != 21) detected[f].push_back({place(f) + flicker, 50, place(f) + 40 + flicker, 90});
    if (f < 12) detected[f].push_back({200, 50, 240, 90});
  }
  detected[7].push_back({300, 10, 330, 40});
  const auto truth = smoothed_over_time(detected, 10);
  ASSERT_EQ(truth.size(), 40u);
  for (std::size_t f = 0; f < 40; ++f) {
    ASSERT_EQ(truth[f].size(), f < 12 ? 2u : 1u) << f;
    const TrackedBox& moving = truth[f].front().x0 < 150 ? truth[f].front() : truth[f].back();
    EXPECT_NEAR(moving.x0, place(f), 0.8) << f;
    EXPECT_FLOAT_EQ(moving.y1, 90);
  }
  EXPECT_TRUE(smoothed_over_time({}, 10).empty());
}

TEST(RealFootage, SaysWhatIsMissing) {
  const auto none = real_footage("/no/such/video.avi");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().find("/no/such/video.avi"), std::string::npos);
}

}  // namespace
}  // namespace leat::bench
