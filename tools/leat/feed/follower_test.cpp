// Following boxes over a generated video, with answers that come late and every now and then.
#include "tools/leat/feed/follower.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tools/scene/tracking/motion.h"

namespace leat::tools {
namespace {

constexpr std::uint32_t kWide = 320, kHigh = 180;

struct Film {
  explicit Film(leat_format format = LEAT_FORMAT_gray8, std::uint32_t times = 1) : scale(times) {
    shape = {.format = format, .width = kWide * scale, .height = kHigh * scale, .rate = 60};
    truth.width = shape.width;
    truth.height = shape.height;
  }
  // Renders picture f into the follower's memory and keeps its truth.
  void take(Follower& follower, std::uint64_t f) {
    std::vector<std::uint8_t> grey(std::size_t{kWide} * kHigh);
    const auto& objects = scene.render(f, grey.data(), kWide);
    const leat_frame& to = follower.picture();
    const std::uint32_t bytes = shape.format == LEAT_FORMAT_rgb24 ? 3 : 1;
    for (std::uint32_t y = 0; y < shape.height; ++y)
      for (std::uint32_t x = 0; x < shape.width; ++x)
        for (std::uint32_t c = 0; c < bytes; ++c)
          to.planes[0][std::size_t{y} * to.strides[0] + x * bytes + c] =
              grey[std::size_t{y / scale} * kWide + x / scale];
    truth.pictures.resize(std::max<std::size_t>(truth.pictures.size(), f + 1));
    truth.pictures[f].clear();
    const auto s = static_cast<float>(scale);
    for (const scene::MovingObject& o : objects)
      truth.pictures[f].push_back({.x0 = o.x0 * s,
                                   .y0 = o.y0 * s,
                                   .x1 = o.x1 * s,
                                   .y1 = o.y1 * s,
                                   .visible = o.visible,
                                   .ignore = o.visible < 0.5f});
  }
  leat_answer answer(std::uint64_t f) {  // the truth itself
    result = std::make_unique<leat_result>();
    for (const scene::Object& o : truth.pictures[f])
      if (!o.ignore) result->detections[result->detection_count++] = {.x0 = o.x0, .y0 = o.y0, .x1 = o.x1, .y1 = o.y1};
    leat_answer a{};
    a.result = result.get();
    return a;
  }
  std::uint32_t scale;
  PictureFormat shape;
  scene::MotionScene scene{*scene::motion_kind("walk"), {}};
  Truth truth;
  std::unique_ptr<leat_result> result;
};

TEST(Follower, BoxesStayOnTheirObjectsBetweenAnswersOfEveryTenthPicture) {
  for (const leat_format format : {LEAT_FORMAT_gray8, LEAT_FORMAT_rgb24}) {
    Film film(format, format == LEAT_FORMAT_rgb24 ? 2 : 1);
    Follower follower(film.shape, &film.truth, scene::AnyTracker::blocks());
    for (std::uint64_t f = 0; f < 120; ++f) {
      film.take(follower, f);
      (void)follower.show(f + 1, f);
      if (f >= 3 && (f - 3) % 10 == 0) {  // three pictures late
        const auto seen = follower.answered(f - 3 + 1, f - 3, film.answer(f - 3));
        EXPECT_EQ(seen.has_value(), f > 3);
        if (seen) {
          EXPECT_EQ(seen->stride, 10u);
        }
      }
    }
    const FollowerFigures& f = follower.figures();
    EXPECT_EQ(f.frames, 120u);
    EXPECT_EQ(f.reports, 11u);
    EXPECT_GT(f.judged, 100u);
    EXPECT_LT(f.off_truth_sum / static_cast<double>(f.judged), 0.15);
    EXPECT_LT(f.detector_off_sum, 1e-6);
    EXPECT_GT(f.tracking_cpu_s, 0);
  }
}

TEST(Follower, APictureForTheServerIsTheOneShown) {
  Film film;
  Follower follower(film.shape, nullptr, scene::AnyTracker::blocks());
  film.take(follower, 5);
  std::vector<std::uint8_t> memory(std::size_t{kHigh} * 384);
  leat_frame slot = follower.picture();
  slot.planes[0] = memory.data();
  slot.strides[0] = 384;
  copy_picture(follower.picture(), slot);
  for (std::uint32_t y = 0; y < kHigh; ++y)
    ASSERT_EQ(std::memcmp(memory.data() + y * 384, follower.picture().planes[0] + y * kWide, kWide), 0) << y;
}

TEST(Follower, WithoutAnAnswerNothingIsShownAndTensorsAreNotTaken) {
  Film film;
  Follower follower(film.shape, &film.truth, scene::AnyTracker::blocks());
  film.take(follower, 0);
  EXPECT_TRUE(follower.show(1, 0).empty());
  EXPECT_EQ(follower.figures().followed, 0u);
  EXPECT_TRUE(follower.tracked().boxes.empty());
  EXPECT_EQ(follower.tracked().banner, "no answer yet");
  EXPECT_FALSE(Follower::takes({.format = LEAT_FORMAT_tensors}));
}

}  // namespace
}  // namespace leat::tools
