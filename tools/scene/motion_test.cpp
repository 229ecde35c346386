#include "tools/scene/motion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "leat/block_tracker.hpp"
#include "leat/tracked_stream.hpp"

namespace leat::scene {
namespace {

struct Video {
  explicit Video(std::string_view name) : scene(*motion_kind(name), {.seed = 5}), pixels(320 * 180) {}
  std::vector<TrackedBox> frame(std::uint64_t index) {
    std::vector<TrackedBox> out;
    for (const MovingObject& o : scene.render(index, pixels.data(), 320))
      if (o.visible >= 0.5f) out.push_back({o.x0, o.y0, o.x1, o.y1, o.id});
    return out;
  }
  [[nodiscard]] GreyFrame grey() const { return {pixels.data(), 320, 180, 320}; }
  MotionScene scene;
  std::vector<std::uint8_t> pixels;
};

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

TEST(BlockTracker, FollowsFarBetterThanHoldingTheLastAnswer) {
  for (const char* name : {"easy", "walk", "zoom"}) {
    double tracked = 0, held = 0;

    for (std::uint64_t from = 0; from < 300; from += 50) {
      Video v(name);
      const auto start = v.frame(from);
      BlockTracker tracker;
      tracker.start(v.grey(), start);
      std::vector<TrackedBox> truth;
      for (std::uint64_t s = 1; s <= 16; ++s) {
        truth = v.frame(from + s);
        tracker.step(v.grey());
      }
      tracked += distance(tracker.boxes(), truth);
      held += distance(start, truth);
    }
    EXPECT_LT(tracked, 0.8 * held) << name;
  }
}

TEST(BlockTracker, OddFramesAndBoxesDoNoHarm) {
  std::vector<std::uint8_t> flat(64 * 64, 100);
  const GreyFrame frame{flat.data(), 64, 64, 64};
  BlockTracker tracker;
  const std::vector<TrackedBox> boxes = {
      {-50, -50, -10, -10, 1}, {0, 0, 0, 0, 2}, {10, 10, 40, 40, 3}, {-1e9f, 0, 1e9f, 10, 4}};
  tracker.start(frame, boxes);
  tracker.step(frame);
  tracker.step({flat.data(), 32, 32, 64});  // another size
  tracker.step({flat.data(), 4, 4, 64});
  ASSERT_EQ(tracker.boxes().size(), 4u);
  EXPECT_EQ(tracker.boxes()[2].x0, 10);  // without texture it stays
}

// Answers for every eighth frame, three frames late: what is shown is far better than the last answer held, and what
// the client reports is the distance it would have measured with the truth.
TEST(TrackedStream, CatchesUpShowsAndReports) {
  Video v("walk");
  TrackedStream<BlockTracker> tracked(16);
  std::vector<std::vector<TrackedBox>> truth;
  double shown = 0, held = 0;
  int reports = 0, frames = 0;
  std::vector<TrackedBox> last;
  for (std::uint64_t f = 0; f < 120; ++f) {
    truth.push_back(v.frame(f));
    tracked.frame(f, v.grey());
    if (f >= 3 && (f - 3) % 8 == 0) {
      const auto report = tracked.answer(f - 3, truth[f - 3]);
      EXPECT_EQ(report.has_value(), f > 3);
      if (report) {
        EXPECT_EQ(report->stride, 8u);
        EXPECT_LT(report->drop, 0.5);
        ++reports;
      }
      last = truth[f - 3];
    }
    if (f < 4) continue;
    shown += distance(tracked.boxes(), truth[f]);
    held += distance(last, truth[f]);
    ++frames;
  }
  EXPECT_EQ(reports, 14);
  EXPECT_LT(shown, 0.8 * held);
}

TEST(TrackedStream, IgnoresAnswersOfOldUnknownAndFutureFrames) {
  Video v("easy");
  TrackedStream<BlockTracker> tracked(4);
  EXPECT_FALSE(tracked.answer(0, {}));
  std::vector<std::vector<TrackedBox>> truth;
  for (std::uint64_t f = 0; f < 10; ++f) {
    truth.push_back(v.frame(f));
    tracked.frame(f, v.grey());
  }
  EXPECT_FALSE(tracked.answer(2, truth[2]));  // kept no longer
  EXPECT_FALSE(tracked.answer(50, truth[2]));
  EXPECT_TRUE(tracked.boxes().empty());
  EXPECT_FALSE(tracked.answer(8, truth[8]));  // the first: nothing to compare with
  EXPECT_EQ(tracked.boxes().size(), truth[8].size());
  EXPECT_FALSE(tracked.answer(7, truth[7]));  // older than what is shown
  tracked.frame(3, v.grey());                 // a number that does not grow
  const auto report = tracked.answer(9, truth[9]);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stride, 1u);
  EXPECT_LT(report->drop, 0.1);
}

TEST(Distance, IsOneMinusTheOverlapOfBothSets) {
  const TrackedBox a{0, 0, 10, 10, 0}, half{0, 0, 10, 5, 0}, far{50, 50, 60, 60, 0};
  const std::vector<TrackedBox> none, one = {a}, two = {a, far};
  EXPECT_EQ(distance(none, none), 0);
  EXPECT_EQ(distance(one, none), 1);
  EXPECT_EQ(distance(one, one), 0);
  EXPECT_DOUBLE_EQ(distance(one, two), 0.5);
  EXPECT_DOUBLE_EQ(distance(one, std::vector<TrackedBox>{half}), 0.5);
}

}  // namespace
}  // namespace leat::scene
