#include "bench/gpu/statistics.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace leat::probe {
namespace {

TEST(Statistics, NothingForNoSamples) { EXPECT_FALSE(summarise({}).has_value()); }

TEST(Statistics, OneSampleIsEveryQuantile) {
  const Summary s = *summarise({4.5});
  EXPECT_EQ(s.count, 1u);
  for (double v : {s.min, s.p25, s.median, s.p75, s.p99, s.max}) EXPECT_EQ(v, 4.5);
  EXPECT_EQ(s.relative_spread(), 0);
}

TEST(Statistics, EvenCountInterpolatesTheMedian) {
  const Summary s = *summarise({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.p25, 1.75);
  EXPECT_DOUBLE_EQ(s.p75, 3.25);
  EXPECT_DOUBLE_EQ(s.relative_spread(), 0.6);
  EXPECT_EQ(s.p99, 4);
}

TEST(Statistics, P99IsAMeasuredValueOfTheRightRank) {
  std::vector<double> samples(1000);
  std::iota(samples.begin(), samples.end(), 1.0);
  std::mt19937 random(7);
  std::shuffle(samples.begin(), samples.end(), random);
  const Summary s = *summarise(samples);
  EXPECT_EQ(s.p99, 990);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 1000);
  EXPECT_DOUBLE_EQ(s.median, 500.5);
}

TEST(Statistics, ZeroMedianHasNoSpread) { EXPECT_EQ(summarise({0, 0, 0, 9})->relative_spread(), 0); }

TEST(StatisticsDeathTest, ValueThatIsNoNumberEndsTheProcess) {
  EXPECT_DEATH((void)summarise({1, std::numeric_limits<double>::quiet_NaN()}), "");
}

}  // namespace
}  // namespace leat::probe
