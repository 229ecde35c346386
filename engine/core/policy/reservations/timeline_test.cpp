// Timeline against a naive twin: one bool per nanosecond.
#include "engine/core/policy/reservations/timeline.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tools/base/text/sanitized.h"

namespace leat::core {
namespace {

constexpr TimeNs kSpan = 200;

struct Twin {
  std::vector<bool> busy = std::vector<bool>(kSpan * 3, false);
  void set(TimeNs begin, TimeNs end, bool value) {
    for (TimeNs t = begin; t < end; ++t) busy[static_cast<std::size_t>(t)] = value;
  }
  [[nodiscard]] TimeNs earliest(TimeNs t, TimeNs length) const {
    for (;; ++t) {
      TimeNs run = 0;
      while (run < length && !busy[static_cast<std::size_t>(t + run)]) ++run;
      if (run == length) return t;
    }
  }
};

TEST(Timeline, FillsGapsAndMergesNeighbours) {
  Timeline t(8);
  ASSERT_TRUE(t.reserve(10, 20));
  ASSERT_TRUE(t.reserve(30, 40));
  EXPECT_EQ(t.earliest(0, 10), 0);
  EXPECT_EQ(t.earliest(5, 10), 20);
  EXPECT_EQ(t.earliest(5, 11), 40);
  ASSERT_TRUE(t.reserve(20, 30));
  EXPECT_EQ(t.size(), 1u);
  ASSERT_TRUE(t.release(15, 35));
  EXPECT_EQ(t.size(), 2u);
  EXPECT_EQ(t.earliest(10, 20), 15);
  t.expire(16);
  EXPECT_EQ(t.size(), 1u);
}

TEST(Timeline, OneThatOnlyAppendsLeavesItsGaps) {
  Timeline t(8, true);
  EXPECT_EQ(t.earliest(5, 1), 5);
  ASSERT_TRUE(t.reserve(10, 20));
  ASSERT_TRUE(t.reserve(30, 40));
  EXPECT_EQ(t.earliest(0, 1), 40);
  EXPECT_EQ(t.earliest(50, 1), 50);
  ASSERT_TRUE(t.release(30, 40));
  EXPECT_EQ(t.earliest(0, 1), 20);
}

TEST(Timeline, FullTableRefusesAndKeepsItsContent) {
  Timeline t(2);
  ASSERT_TRUE(t.reserve(0, 10));
  ASSERT_TRUE(t.reserve(20, 30));
  EXPECT_FALSE(t.room(1));
  EXPECT_FALSE(t.reserve(40, 50));
  EXPECT_FALSE(t.release(3, 5));
  EXPECT_EQ(t.earliest(0, 10), 10);
  EXPECT_EQ(t.earliest(0, 11), 30);
}

TEST(Timeline, EqualsItsNaiveTwin) {
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 60 : 300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Timeline a(kSpan), b(kSpan);
    Twin twin_a, twin_b, both;
    for (int step = 0; step < 200; ++step) {
      const auto begin = static_cast<TimeNs>(random() % kSpan);
      const TimeNs end = begin + static_cast<TimeNs>(random() % 20);
      const bool first = random() % 2 == 0, value = random() % 3 != 0;
      Timeline& timeline = first ? a : b;
      ASSERT_TRUE(value ? timeline.reserve(begin, end) : timeline.release(begin, end));
      (first ? twin_a : twin_b).set(begin, end, value);
      const auto from = static_cast<TimeNs>(random() % kSpan), length = static_cast<TimeNs>(1 + random() % 30);
      ASSERT_EQ(timeline.earliest(from, length), (first ? twin_a : twin_b).earliest(from, length));
      for (std::size_t t = 0; t < both.busy.size(); ++t) both.busy[t] = twin_a.busy[t] || twin_b.busy[t];
      ASSERT_EQ(Timeline::earliest_on_both(a, b, from, length), both.earliest(from, length));
      for (std::size_t i = 0; i < timeline.size(); ++i) {
        ASSERT_LT(timeline[i].begin, timeline[i].end);
        if (i > 0) {
          ASSERT_GT(timeline[i].begin, timeline[i - 1].end);
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat::core
