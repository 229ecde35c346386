// The trackers on generated videos, and what keeps frames around them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "leat/block_tracker.hpp"
#include "leat/tracked_stream.hpp"
#include "tools/scene/tracking/any_tracker.h"
#include "tools/scene/tracking/test_video.h"

namespace leat::scene {
namespace {

// How far tracked boxes are from the truth 16 frames on, and how far the first answer held would be.
struct Distances {
  double tracked = 0, held = 0;
};
template <Tracker T>
Distances sixteen_frames_on(const char* name, T& tracker) {
  Distances sum;
  for (std::uint64_t from = 0; from < 300; from += 50) {
    Video v(name);
    const auto start = v.frame(from);
    tracker.start(v.grey(), start);
    std::vector<TrackedBox> truth;
    for (std::uint64_t s = 1; s <= 16; ++s) {
      truth = v.frame(from + s);
      tracker.step(v.grey());
    }
    sum.tracked += distance(tracker.boxes(), truth);
    sum.held += distance(start, truth);
  }
  return sum;
}

template <Tracker T>
void odd_frames_and_boxes(T& tracker) {
  std::vector<std::uint8_t> flat(64 * 64, 100);
  const GreyFrame frame{flat.data(), 64, 64, 64};
  const float nan = std::nanf("");
  const std::vector<TrackedBox> boxes = {{-50, -50, -10, -10, 1}, {0, 0, 0, 0, 2},       {10, 10, 40, 40, 3},
                                         {-1e9f, 0, 1e9f, 10, 4}, {nan, nan, 9, nan, 5}, {40, 40, 10, 10, 6}};
  tracker.step(frame);  // before anything
  tracker.start(frame, boxes);
  tracker.step(frame);
  tracker.step({flat.data(), 32, 32, 64});  // another size
  tracker.step({flat.data(), 4, 4, 64});
  tracker.step({flat.data(), 4, 4, 64});
  tracker.start({flat.data(), 1, 1, 64}, boxes);
  tracker.step({flat.data(), 1, 1, 64});
  EXPECT_GE(tracker.expected(), 0);
  EXPECT_LE(tracker.expected(), 1);
  ASSERT_EQ(tracker.boxes().size(), 6u);
  EXPECT_EQ(tracker.boxes()[2].x0, 10);  // without texture it stays
  EXPECT_EQ(tracker.boxes()[2].label, 3);
}

TEST(BlockTracker, FollowsFarBetterThanHoldingTheLastAnswer) {
  BlockTracker tracker;
  for (const char* name : {"easy", "walk", "zoom"}) {
    const Distances d = sixteen_frames_on(name, tracker);
    EXPECT_LT(d.tracked, 0.8 * d.held) << name;
  }
}

TEST(BlockTracker, OddFramesAndBoxesDoNoHarm) {
  BlockTracker tracker;
  odd_frames_and_boxes(tracker);
}

TEST(LkTracker, FollowsFarBetterThanHoldingTheLastAnswer) {
  auto tracker = AnyTracker::make("lk");
  if (!tracker.ok()) GTEST_SKIP() << tracker.error();
  EXPECT_EQ(tracker->name(), "lk");
  for (const char* name : {"easy", "walk", "zoom"}) {
    const Distances d = sixteen_frames_on(name, *tracker);
    EXPECT_LT(d.tracked, 0.8 * d.held) << name;
  }
}

TEST(LkTracker, OddFramesAndBoxesDoNoHarm) {
  auto tracker = AnyTracker::make("lk");
  if (!tracker.ok()) GTEST_SKIP() << tracker.error();
  odd_frames_and_boxes(*tracker);
}

TEST(LkTracker, AnyOtherNameIsNoTracker) {
  const auto tracker = AnyTracker::make("magic");
  ASSERT_FALSE(tracker.ok());
  EXPECT_EQ(tracker.error(), "there is no tracker 'magic', only 'blocks' and 'lk'");
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

// A tracker that says as much as it was told.
struct Sure {
  void start(const GreyFrame&, std::span<const TrackedBox> boxes) { kept.assign(boxes.begin(), boxes.end()), age = 0; }
  void step(const GreyFrame&) { ++age; }
  [[nodiscard]] std::span<const TrackedBox> boxes() const { return kept; }
  [[nodiscard]] double expected() const { return 0.01 * age; }
  std::vector<TrackedBox> kept;
  int age = 0;
};

TEST(TrackedStream, SaysWhatTheTrackerExpectsAndWhatItHadExpectedAtAnswers) {
  std::vector<std::uint8_t> grey(64 * 64, 100);
  const std::vector<TrackedBox> boxes = {{10, 10, 40, 40, 1}};
  TrackedStream<Sure> tracked;
  const auto frames = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t n = first; n <= last; ++n) tracked.frame(n, {grey.data(), 64, 64, 64});
  };
  frames(1, 3);
  EXPECT_LT(tracked.expected(), 0);  // nothing is shown
  EXPECT_FALSE(tracked.answer(2, boxes));
  EXPECT_DOUBLE_EQ(tracked.expected(), 0.01);
  frames(4, 9);
  EXPECT_DOUBLE_EQ(tracked.expected(), 0.07);
  const auto report = tracked.answer(8, boxes);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stride, 6u);
  EXPECT_DOUBLE_EQ(report->expected, 0.06);
  EXPECT_DOUBLE_EQ(tracked.expected(), 0.01);
}

TEST(LookBack, EveryNinetySixFramesAndOnlyWhereNoOtherComparisonReachesSoFar) {
  const auto looks = [](std::uint64_t interval, std::uint64_t end) {
    LookBack look;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    for (std::uint64_t f = 0; f < end; f += interval)
      if (const auto from = look.answered(f)) out.emplace_back(*from, f);
    return out;
  };
  using Looks = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(looks(1, 250), (Looks{{0, 16}, {96, 112}, {192, 208}}));
  EXPECT_EQ(looks(6, 250), (Looks{{0, 18}, {96, 114}, {192, 210}}));
  EXPECT_EQ(looks(15, 250), (Looks{{0, 30}, {105, 135}, {210, 240}}));
  EXPECT_EQ(looks(16, 4000), Looks{});  // the answer before is old enough
  LookBack look;                        // nothing is asked for a while
  for (const std::uint64_t f : {0, 4, 8, 500, 504, 512}) EXPECT_FALSE(look.answered(f)) << f;
  EXPECT_EQ(look.answered(516), 500u);
}

// Follows nothing: each step moves all boxes to the right by as much as it was told to.
struct Scripted {
  float drift = 0;
  std::vector<TrackedBox> now;
  void start(const GreyFrame&, std::span<const TrackedBox> boxes) { now.assign(boxes.begin(), boxes.end()); }
  void step(const GreyFrame&) {
    for (TrackedBox& b : now) b.x0 += drift, b.x1 += drift;
  }
  [[nodiscard]] std::span<const TrackedBox> boxes() const { return now; }
};

// Things stand still, tracking drifts by one in a hundred a frame; answers for every fourth frame, two frames late.
TEST(TrackedStream, LooksBackOverAnOlderAnswerOnceInAWhile) {
  const auto lost = [](double frames) { return 1 - (100 - frames) / (100 + frames); };
  const std::vector<TrackedBox> there = {{0, 0, 100, 10, 7}};
  const std::uint8_t pixel = 0;
  TrackedStream<Scripted> tracked(64, Scripted{.drift = 1});
  std::vector<std::uint64_t> far;
  for (std::uint64_t f = 0; f < 200; ++f) {
    const auto shown = tracked.frame(f, {&pixel, 1, 1, 1});
    if (f > 2) {
      EXPECT_EQ(shown.front().x0, static_cast<float>(3 + (f - 3) % 4)) << f;
    }
    if (f % 4 != 2) continue;
    const auto report = tracked.answer(f - 2, there);
    EXPECT_EQ(report.has_value(), f > 2);
    EXPECT_EQ(tracked.boxes().front().x0, 2) << "what is shown is not what was looked back for";
    if (!report) continue;
    EXPECT_EQ(report->stride, 4u);
    EXPECT_NEAR(report->drop, lost(4), 1e-6);
    if (report->far_stride == 0) continue;
    far.push_back(f - 2);
    EXPECT_EQ(report->far_stride, 16u);
    EXPECT_NEAR(report->far_drop, lost(16), 1e-6);
  }
  EXPECT_EQ(far, (std::vector<std::uint64_t>{16, 112}));
}

TEST(TrackedStream, LooksBackNoFurtherThanItKeepsFrames) {
  const std::vector<TrackedBox> there = {{0, 0, 100, 10, 7}};
  const std::uint8_t pixel = 0;
  TrackedStream<Scripted> tracked(12, Scripted{.drift = 1});
  for (std::uint64_t f = 0; f < 200; ++f) {
    tracked.frame(f, {&pixel, 1, 1, 1});
    if (f % 4 != 2) continue;
    const auto report = tracked.answer(f - 2, there);
    EXPECT_TRUE(!report || report->far_stride == 0);
    EXPECT_EQ(tracked.boxes().front().x0, 2);
  }
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
