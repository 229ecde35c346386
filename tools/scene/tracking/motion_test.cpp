#include "tools/scene/tracking/motion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tools/scene/tracking/motion_film.h"
#include "tools/scene/tracking/test_video.h"

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

// In colour the same objects stand at the same places, and count by the street's rule.
TEST(MotionFilm, IsTheVideoInColourWithItsTruth) {
  for (const MotionKind& kind : kMotionKinds) {
    MotionFilm film(kind, {.seed = 5, .width = 320, .height = 180, .fps = 60});
    Video video(kind.name);
    std::vector<std::uint8_t> rgb(320 * 180 * 3), again(rgb.size());
    const auto objects = film.render(70, rgb.data(), 960);
    const auto& moving = video.scene.render(70, video.pixels.data(), 320);
    ASSERT_EQ(objects.size(), moving.size()) << kind.name;
    ASSERT_FALSE(objects.empty()) << kind.name;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const Object& o = objects[i];
      EXPECT_EQ(o.x0, moving[i].x0);
      EXPECT_EQ(o.y1, moving[i].y1);
      EXPECT_EQ(o.ignore, does_not_count(o, 180));
      if (o.visible < 0.99f) continue;
      const auto x = static_cast<std::size_t>((o.x0 + o.x1) / 2), y = static_cast<std::size_t>((o.y0 + o.y1) / 2);
      const std::uint8_t* const p = rgb.data() + 3 * (y * 320 + x);
      EXPECT_GT(std::max({p[0], p[1], p[2]}) - std::min({p[0], p[1], p[2]}), 80) << kind.name << ": a colour";
    }
    MotionFilm(kind, {.seed = 5, .width = 320, .height = 180, .fps = 60}).render(70, again.data(), 960);
    EXPECT_EQ(rgb, again);
    MotionFilm(kind, {.seed = 5, .camera = 1, .width = 320, .height = 180, .fps = 60}).render(70, again.data(), 960);
    EXPECT_NE(rgb, again);
  }
}

}  // namespace
}  // namespace leat::scene
