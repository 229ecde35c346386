#include "tools/scene/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <tuple>

namespace leat::scene {
namespace {

std::vector<std::uint8_t> picture(const SceneOptions& options, std::uint64_t frame,
                                  std::vector<Object>* truth = nullptr) {
  Scene scene(options);
  std::vector<std::uint8_t> rgb(scene.rgb_bytes());
  const auto& objects = scene.render(frame, rgb.data(), std::size_t{3} * scene.options().width);
  if (truth) *truth = objects;
  return rgb;
}

TEST(Scene, SameKeyGivesTheSamePictureAndAnotherKeyAnother) {
  const SceneOptions options{.seed = 7, .camera = 3, .width = 640, .height = 360};
  SceneOptions other_camera = options, other_seed = options;
  other_camera.camera = 4, other_seed.seed = 8;
  const auto first = picture(options, 100);
  EXPECT_EQ(first, picture(options, 100));
  EXPECT_NE(first, picture(options, 101));
  EXPECT_NE(first, picture(other_camera, 100));
  EXPECT_NE(first, picture(other_seed, 100));
}

TEST(Scene, AFrameDoesNotDependOnThoseRenderedBeforeIt) {
  Scene scene({.seed = 5, .width = 320, .height = 180});
  std::vector<std::uint8_t> rgb(scene.rgb_bytes());
  for (int i = 0; i < 5; ++i) scene.render(static_cast<std::uint64_t>(i) * 13, rgb.data(), 960);
  EXPECT_EQ(rgb, picture(scene.options(), 52));
}

TEST(Scene, TruthIsInsideTheFrameAndMarksWhatDoesNotCount) {
  std::size_t counting = 0, ignored = 0;
  for (std::uint32_t camera = 0; camera < 20; ++camera) {
    std::vector<Object> truth;
    picture({.seed = 11, .camera = camera}, 40, &truth);
    for (const Object& o : truth) {
      EXPECT_LE(0, o.x0);
      EXPECT_LE(0, o.y0);
      EXPECT_LE(o.x1, 1280);
      EXPECT_LE(o.y1, 720);
      EXPECT_LT(o.x0, o.x1);
      EXPECT_GT(o.visible, 0);
      EXPECT_LE(o.visible, 1);
      EXPECT_EQ(o.ignore,
                o.visible < kMinVisible || std::min(o.x1 - o.x0, o.y1 - o.y0) < static_cast<float>(kMinSide * 720));
      (o.ignore ? ignored : counting) += 1;
    }
  }
  EXPECT_GT(counting, 100u);  // both kinds occur, or the rule is not exercised
  EXPECT_GT(ignored, 10u);
}

// The hue of the visible middle of unhidden objects is the hue of their colour's name.
TEST(Scene, ColoursLookLikeTheirNames) {
  constexpr double kHues[] = {0, 120, 225, 55, 305, 180};
  int seen = 0;
  for (std::uint32_t camera = 0; camera < 12; ++camera) {
    std::vector<Object> truth;
    const auto rgb = picture({.seed = 2, .camera = camera}, 7, &truth);
    for (const Object& o : truth) {
      if (o.visible < 0.999f || o.shape == 2) continue;  // a triangle's box is not centred on it
      const auto x = static_cast<std::size_t>((o.x0 + o.x1) / 2), y = static_cast<std::size_t>((o.y0 + o.y1) / 2);
      const std::uint8_t* p = rgb.data() + (y * 1280 + x) * 3;
      const double pi = std::acos(-1),
                   hue = std::atan2(std::sqrt(3.0) * (p[1] - p[2]), 2.0 * p[0] - p[1] - p[2]) * 180 / pi;
      const double away = std::abs(std::remainder(hue - kHues[o.colour], 360));
      EXPECT_LT(away, 15) << kColours[static_cast<std::size_t>(o.colour)] << " at " << x << "," << y << " camera "
                          << camera;
      ++seen;
    }
  }
  EXPECT_GT(seen, 30);
}

TEST(Scene, ObjectsMoveALittleFromFrameToFrame) {
  std::vector<Object> before, after;
  picture({.seed = 3}, 10, &before);
  picture({.seed = 3}, 11, &after);
  int moved = 0;
  for (const Object& a : before) {
    for (const Object& b : after) {
      if (a.shape != b.shape || a.colour != b.colour || std::abs(a.x0 - b.x0) > 20 || std::abs(a.y0 - b.y0) > 20)
        continue;
      moved += a.x0 != b.x0;
    }
  }
  EXPECT_GE(moved, static_cast<int>(before.size()) / 2);
}

TEST(Scene, Nv12OfGreyHasLimitedRangeAndNeutralChroma) {
  const std::vector<std::uint8_t> white(3 * 64 * 32, 255), black(3 * 64 * 32, 0);
  std::vector<std::uint8_t> out(64 * 32 * 3 / 2);
  to_nv12(white.data(), 3 * 64, 64, 32, out.data());
  EXPECT_NEAR(out[0], 235, 1);
  EXPECT_NEAR(out[64 * 32], 128, 1);
  to_nv12(black.data(), 3 * 64, 64, 32, out.data());
  EXPECT_NEAR(out[0], 16, 1);
  EXPECT_NEAR(out.back(), 128, 1);
}

// By swscale and libyuv: (200, 30, 90) in BT.601 and in BT.709, limited range.
TEST(Scene, Nv12HasTheMatrixThatItsHeightMeans) {
  for (const auto& [height, y, u, v] : {std::tuple{718U, 91, 129, 198}, std::tuple{720U, 77, 137, 200}}) {
    std::vector<std::uint8_t> rgb, out(std::size_t{16} * height * 3 / 2);
    for (std::size_t i = 0; i < std::size_t{16} * height; ++i) rgb.insert(rgb.end(), {200, 30, 90});
    to_nv12(rgb.data(), 3 * 16, 16, height, out.data());
    EXPECT_NEAR(out[0], y, 1) << height;
    EXPECT_NEAR(out[16 * height], u, 1) << height;
    EXPECT_NEAR(out[16 * height + 1], v, 1) << height;
  }
}

TEST(Scene, TruthLineIsJson) {
  const std::vector<Object> objects = {{1, 2, 30.5f, 40, 3, 0, 0.83f, false, 7}};
  EXPECT_EQ(
      truth_line({.seed = 9, .camera = 2}, 5, objects),
      R"({"seed":9,"camera":2,"frame":5,"width":1280,"height":720,"objects":[{"box":[1.00,2.00,30.50,40.00],"shape":"star","colour":"red","visible":0.830,"ignore":false,"id":7}]})");
}

}  // namespace
}  // namespace leat::scene
