#include "tools/scene/motion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/scene/test_video.h"

namespace leat::scene {
namespace {

TEST(Motion, AnyFrameIsTheSameWhereverOneBegins) {
  Video a("crowd"), b("crowd");
  a.frame(3);
  a.frame(4);
  const auto boxes = a.frame(90), alone = b.frame(90);
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_EQ(distance(boxes, alone), 0);
  EXPECT_FALSE(motion_kind("no such"));
}

TEST(Motion, PhasesSwingAndCounterSwingIsTheOtherWayRound) {
  const auto moved = [](std::string_view name, std::uint64_t from) {
    Video v(name);
    const auto a = v.frame(from), b = v.frame(from + 30);
    double sum = 0;
    for (const TrackedBox& x : a)
      for (const TrackedBox& y : b)
        if (x.label == y.label) sum += std::abs(x.x0 + x.x1 - y.x0 - y.x1) + std::abs(x.y0 + x.y1 - y.y0 - y.y1);
    return sum;
  };
  EXPECT_GT(moved("swing", 120), 4 * moved("swing", 30));  // phases of 1.5 s, slow first
  EXPECT_GT(moved("counter-swing", 30), 4 * moved("counter-swing", 120));
}

}  // namespace
}  // namespace leat::scene
