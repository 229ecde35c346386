#include "engine/daemon/workers/restart_timer.h"

#include <gtest/gtest.h>

namespace leat::daemon {
namespace {

constexpr std::int64_t kMilli = 1'000'000, kLongLife = 10'000 * kMilli;

TEST(RestartTimer, WhoHasServedStartsAtOnceAndFailuresInARowWaitTwiceAsLong) {
  RestartTimer timer(350 * kMilli);
  timer.ended(1 * kMilli);  // it had been ready
  EXPECT_EQ(timer.backoff_ns(), 0);
  for (const std::int64_t ms : {200, 350, 350}) {  // never ready, or hardly
    timer.ended(std::nullopt);
    EXPECT_EQ(timer.backoff_ns(), ms * kMilli);
  }
  EXPECT_EQ(timer.failures(), 4U);
  timer.ended(kLongLife);
  EXPECT_EQ(timer.failures(), 1U) << "a long life ends the row";
  EXPECT_EQ(timer.backoff_ns(), 0);
}

TEST(RestartTimer, AnExcusedEndIsNoFailure) {
  RestartTimer timer(1000 * kMilli);
  timer.ended(std::nullopt);
  timer.ended(1 * kMilli);
  timer.excuse();
  EXPECT_EQ(timer.failures(), 1U);
  timer.set(5);
  EXPECT_EQ(timer.due_ns(), 5);
}

TEST(RestartTimer, ItIsTakenOnceWhenItIsDue) {
  RestartTimer timer(1000 * kMilli);
  timer.ended(std::nullopt);
  timer.set(0);
  EXPECT_FALSE(timer.take(99 * kMilli));
  EXPECT_TRUE(timer.take(100 * kMilli));
  EXPECT_FALSE(timer.take(kLongLife)) << "until it is set again";
  EXPECT_EQ(timer.restarts(), 1U);
}

}  // namespace
}  // namespace leat::daemon
