#include "shm/src/protocol/limiters.h"

#include <gtest/gtest.h>

namespace leat::shm {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(TokenBucket, GivesItsBurstThenItsRate) {
  TokenBucket bucket(100, 10);
  std::int64_t now = 5 * kSecond;
  int taken = 0;
  while (bucket.take(now)) ++taken;
  EXPECT_EQ(taken, 10);
  const std::int64_t ready = bucket.ready_ns(3);
  EXPECT_NEAR(static_cast<double>(ready - now), 0.03 * kSecond, 1e6);
  EXPECT_FALSE(bucket.take(ready - 1'000'000, 3));
  EXPECT_TRUE(bucket.take(ready, 3));
  // Over a long time its rate and no more, whatever the steps.
  now = ready;
  taken = 0;
  for (std::int64_t at = now; at < now + 10 * kSecond; at += 777'777) taken += bucket.take(at);
  EXPECT_NEAR(taken, 1000, 2);
  EXPECT_TRUE(bucket.take(now + 1000 * kSecond, 10));
  EXPECT_FALSE(bucket.take(now + 1000 * kSecond)) << "it never holds more than its burst";
}

TEST(TokenBucket, WhatWasChargedIsOwed) {
  TokenBucket bucket(100, 10);
  std::int64_t now = kSecond;
  ASSERT_TRUE(bucket.take(now));
  bucket.charge(109);
  EXPECT_FALSE(bucket.take(now + kSecond - 10'000'000));
  EXPECT_TRUE(bucket.take(now + kSecond + 20'000'000));
}

TEST(LogLimit, LogsAFewAndSaysHowManyItLeftOut) {
  LogLimit limit;
  std::int64_t now = kSecond;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.line(now, "x"), "x");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limit.line(now += 1'000'000, "x"), "");
  EXPECT_EQ(limit.line(now + 10 * kSecond, "x"), "x (1000 lines left out before it)");
  EXPECT_EQ(limit.line(now + 21 * kSecond, "x"), "x") << "what was told is not told again";
}

TEST(LineAllowance, AllTogetherHaveTenLinesASecondAndTheRestIsCounted) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  LineAllowance all;
  std::int64_t now = kSecondNs;
  EXPECT_EQ(all.due_ns(), INT64_MAX);
  std::uint64_t lines = 0, said = 0;
  for (int ms = 0; ms < 30'000; ms += 5) {
    now += 5'000'000;
    lines += all.take(now);
    if (now >= all.due_ns()) {
      EXPECT_NE(all.summary(now).find(" lines that clients caused were left out"), std::string::npos);
      ++said;
    }
    ASSERT_LE(lines + said, static_cast<std::uint64_t>(10 * (1 + ms / 1000))) << ms;
  }
  EXPECT_GE(lines, 150U);
  EXPECT_EQ(said, 3U);
  EXPECT_NE(all.summary(now), "");
  EXPECT_EQ(all.summary(now), "");  // all of it was said
  EXPECT_EQ(all.due_ns(), INT64_MAX);
}

}  // namespace
}  // namespace leat::shm
