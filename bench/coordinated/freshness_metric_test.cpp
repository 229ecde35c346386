// Timelines small enough to be worked out by hand: period 10 ms, usable for 20 ms, first capture at 5 ms.
#include "bench/coordinated/freshness_metric.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "bench/coordinated/freshness_bound.h"

namespace leat::bench {
namespace {

constexpr TimeNs kMs = 1'000'000;
constexpr Observed kStream{
    .period = 10 * kMs, .max_age = 20 * kMs, .first = 5 * kMs, .end = 48 * kMs};  // windows from 5, 15, 25, 35 ms

Freshness of(std::vector<std::pair<int, int>> at_and_capture, Observed s = kStream) {
  std::vector<Delivery> deliveries;
  for (auto [at, capture] : at_and_capture) deliveries.push_back({at * kMs, capture * kMs});
  return measure(s, deliveries);
}

TEST(FreshnessMetric, EveryPeriodServedAtOnce) {
  const Freshness f = of({{9, 5}, {19, 15}, {29, 25}, {39, 35}});
  EXPECT_EQ(f.uncovered_permille, 0);
  EXPECT_EQ(f.view_permille, 0);
  EXPECT_EQ(f.longest_gap_ms, 0);
  EXPECT_EQ(f.answers, 4);
  EXPECT_EQ(f.response_ms_p50, 4);
  EXPECT_EQ(f.peak_age_ms, 14);  // of capture 5, just before 19
  // 5..9: 0 to 4; three times 10 ms from 4 to 14; 39..48: 4 to 13. (8 + 270 + 76.5) / 43
  EXPECT_NEAR(f.mean_age_ms, 354.5 / 43, 1e-9);
}

TEST(FreshnessMetric, ADeliveryCountsInTheWindowInWhichItComes) {
  // One period late throughout: fresh (age 12), but nothing comes in the first window.
  EXPECT_EQ(of({{17, 5}, {27, 15}, {37, 25}}).uncovered_permille, 250);
  // Two in one window cover one window; the edge belongs to the window it begins.
  EXPECT_EQ(of({{6, 5}, {16, 5}, {24, 15}, {35, 25}}).uncovered_permille, 250);
}

TEST(FreshnessMetric, AResultStaleOnArrivalCoversNothing) {
  const Freshness f = of({{26, 5}, {36, 15}});  // ages 21 and 21
  EXPECT_EQ(f.uncovered_permille, 1000);
  EXPECT_EQ(f.stale_permille, 1000);
  EXPECT_EQ(f.longest_gap_ms, 48 - 25);  // from 5 + 20 on: nothing usable ever came
  const Freshness edge = of({{25, 5}});  // age 20 is still usable
  EXPECT_EQ(edge.uncovered_permille, 750);
  EXPECT_EQ(edge.stale_permille, 0);
}

TEST(FreshnessMetric, TheViewSamplesTheNewestCaptureAtTheEndOfEachPeriod) {
  // Samples at 15, 25, 35, 45. Capture 5 delivered at 15 exactly: seen, age 10; at 25 age 20: covered; at 35 age 30:
  // not; 40 brings capture 25, age 20 at 45: covered.
  const Freshness f = of({{15, 5}, {40, 25}});
  EXPECT_EQ(f.view_permille, 250);
  EXPECT_EQ(f.no_result_permille, 0);
  EXPECT_EQ(f.longest_miss_run, 1);
  EXPECT_EQ(f.uncovered_permille, 500);
  EXPECT_EQ(f.longest_gap_ms, 40 - 25);  // capture 5 expires at 25
}

TEST(FreshnessMetric, AnOlderCaptureDoesNotMakeInformationOlder) {
  const Freshness f = of({{20, 15}, {22, 5}, {40, 35}});
  EXPECT_EQ(f.peak_age_ms, 25);  // of capture 15, just before 40
  EXPECT_EQ(f.longest_gap_ms, 40 - 35);
}

TEST(FreshnessMetric, NothingDelivered) {
  const Freshness f = of({});
  EXPECT_EQ(f.uncovered_permille, 1000);
  EXPECT_EQ(f.view_permille, 1000);
  EXPECT_EQ(f.no_result_permille, 1000);
  EXPECT_EQ(f.longest_miss_run, 4);
  EXPECT_EQ(f.longest_gap_ms, 48 - 25);
  EXPECT_EQ(f.mean_age_ms, 43.0 / 2);
}

TEST(FreshnessMetric, WhatComesAfterTheEndIsNotSeen) {
  EXPECT_EQ(of({{9, 5}, {48, 45}}).answers, 1);
  EXPECT_EQ(
      of({{9, 5}}, {.period = 10 * kMs, .max_age = 20 * kMs, .first = 5 * kMs, .end = 14 * kMs}).uncovered_permille,
      0);  // no whole window
}

TEST(FreshnessBound, ByHand) {
  const Observed s{.period = 10, .max_age = 20, .first = 0, .end = 40};
  EXPECT_EQ(fewest_lost_alone(s, std::vector<Frame>{{0, 9}, {10, 9}, {20, 9}, {30, 9}}), 0U);
  EXPECT_EQ(fewest_lost_alone(s, std::vector<Frame>{{0, 11}, {10, 9}, {20, 9}, {30, 9}}),
            1U);  // window 0 is lost, and with it a period of work
  EXPECT_EQ(fewest_lost_alone(s, std::vector<Frame>{{0, 10}, {10, 10}, {20, 10}, {30, 10}}),
            1U);  // each one window late
  EXPECT_EQ(fewest_lost_alone(s, std::vector<Frame>{{0, 25}, {10, 25}, {20, 25}, {30, 25}}), 4U);  // never fresh
  TimeNs capacity = 12;
  EXPECT_DOUBLE_EQ(max_worth({{1, 5}, {1, 3}, {2, 12}, {1, 4}}, capacity),
                   3);  // 3, 4 and 5; the 12 would bring less for its time
  EXPECT_EQ(capacity, 0);
  capacity = 9;
  EXPECT_DOUBLE_EQ(max_worth({{1, 5}, {1, 3}, {1, 4}}, capacity), 2.4);
  capacity = 20;
  EXPECT_DOUBLE_EQ(max_worth({{1, 5}}, capacity), 1);
  EXPECT_EQ(capacity, 15);
}

// Every way to use or leave out each frame, in order.
std::uint32_t brute(const Observed& s, const std::vector<Frame>& frames, std::size_t window, std::size_t frame,
                    TimeNs free) {
  const auto windows = static_cast<std::size_t>((s.end - s.first) / s.period);
  if (window == windows) return 0;
  const TimeNs begin = s.first + static_cast<TimeNs>(window) * s.period;
  std::uint32_t min = 1 + brute(s, frames, window + 1, frame, free);
  for (std::size_t f = frame; f < frames.size(); ++f) {
    const TimeNs done = std::max(std::max(free, frames[f].capture) + frames[f].run, begin);
    if (done < begin + s.period && done - frames[f].capture <= s.max_age)
      min = std::min(min, brute(s, frames, window + 1, f + 1, done));
  }
  return min;
}

TEST(FreshnessBound, EqualsBruteForce) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const Observed s{.period = 10, .max_age = 10 + static_cast<TimeNs>(random() % 3) * 10, .first = 0, .end = 80};
    std::vector<Frame> frames;
    for (TimeNs i = 0; i < 8; ++i) frames.push_back({i * 10, 5 + static_cast<TimeNs>(random() % 12)});
    ASSERT_EQ(fewest_lost_alone(s, frames), brute(s, frames, 0, 0, 0)) << "round " << round;
  }
}

}  // namespace
}  // namespace leat::bench
