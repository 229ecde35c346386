// What trackers expect to have lost: how the rule is made and judged, and that the one that comes with BlockTracker
// tells something of videos that it was not made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "leat/block_tracker.hpp"
#include "tools/scene/random.h"
#include "tools/scene/tracking/certainty_fit.h"

namespace leat::scene {
namespace {

TEST(Certainty, NothingHappenedSoNothingIsExpected) {
  BlockTracker tracker;
  const std::vector<std::uint8_t> flat(64 * 64, 100);
  const std::vector<TrackedBox> box = {{10, 10, 40, 40, 1}};
  EXPECT_EQ(tracker.expected(), 0);  // before anything
  tracker.start({flat.data(), 64, 64, 64}, box);
  EXPECT_EQ(tracker.expected(), 0);
  double before = 0;
  for (int i = 0; i < 20; ++i) {  // without texture it is less and less sure
    tracker.step({flat.data(), 64, 64, 64});
    EXPECT_GT(tracker.expected(), before);
    before = tracker.expected();
  }
  tracker.start({flat.data(), 64, 64, 64}, {});
  EXPECT_EQ(tracker.expected(), 0);
}

TEST(Certainty, ARuleIsFoundAgain) {
  CertaintyFit fit;
  EXPECT_EQ(fit.rule().expected(CertaintyTerms{1}), 0);  // of nothing
  CertaintyRule made;
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) made.weight[i] = 0.01f * static_cast<float>(i % 3);
  Random r(7);
  CertaintyTerms terms{};
  for (int n = 0; n < 4000; ++n) {
    for (float& each : terms) each = static_cast<float>(r.unit());
    fit.add(terms, 1 + static_cast<std::uint32_t>(n % 20), made.expected(terms));
  }
  const CertaintyRule found = fit.rule();
  double apart = 0;
  for (int n = 0; n < 100; ++n) {
    for (float& each : terms) each = static_cast<float>(r.unit());
    apart = std::max(apart, std::abs(found.expected(terms) - made.expected(terms)));
  }
  EXPECT_LT(apart, 0.03);  // of .07 in the mean: what says little is held near 0
}

// A table of one video in which sources of one kind lose twice as much as the others.
DropTable two_kinds(double told) {
  DropTable t;
  t.frames = 20;
  for (std::uint32_t f = 0; f < t.frames; ++f) {
    for (std::uint32_t s = 0; s < DropTable::kStrides; ++s) {
      const double much = f % 2 == 0 ? 2 : 1, lost = 0.003 * s * much;
      t.drop.push_back(static_cast<float>(lost));
      t.expects.push_back(static_cast<float>(0.003 * s * (1 + told * (much - 1))));
    }
  }
  return t;
}

TEST(Certainty, IsJudgedAmongFramesOfOneAge) {
  const CertaintyWorth told = worth(two_kinds(1)), not_told = worth(two_kinds(0));
  EXPECT_NEAR(told.at[2], 1, 1e-6);
  EXPECT_NEAR(told.late, 1, 1e-6);
  EXPECT_EQ(not_told.at[2], 0);
  EXPECT_EQ(not_told.late, not_told.late_by_age);
  EXPECT_LT(not_told.late, 1);
}

TEST(Certainty, OfTheBlockTrackerTellsMoreThanTheAgeOnAVideoThatItWasNotMadeOf) {
  const DropTable table = record_drops(*motion_kind("phases"), 9, 240, 8);
  const CertaintyWorth w = worth(table);
  EXPECT_GT(w.at[2], 0.3);  // .6 to .8 as a rule
  EXPECT_GT(w.late, w.late_by_age + 0.03);
}

}  // namespace
}  // namespace leat::scene
