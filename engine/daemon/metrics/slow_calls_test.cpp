#include "engine/daemon/metrics/slow_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace leat::daemon {
namespace {

constexpr std::int64_t kLongNs = 2'000'000;

void work() {
  const std::int64_t from = own_cpu_ns();
  while (own_cpu_ns() - from < kLongNs) {
  }
}
void wait() { std::this_thread::sleep_for(std::chrono::nanoseconds(kLongNs)); }

constexpr std::int64_t kDear = SlowCalls::kSlowNs + 1;

TEST(SlowCalls, AreThePeersDoingWhenNearlyEveryOneIs) {
  SlowCalls calls;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(calls.again(kDear)) << "a swarm of pauses, " << i + 1;
  EXPECT_TRUE(calls.again(kDear));
  int messages = 0;  // one is read, one is sent and wakes the crowd, and then nothing is left to read
  for (bool blamed = false; !blamed; ++messages) {
    ASSERT_LT(messages, 10);
    blamed = calls.again(0);
    blamed = calls.again(kDear) || blamed;
    blamed = calls.again(0) || blamed;
  }
  EXPECT_LE(messages, 6);
}

TEST(SlowCalls, AreTheMachinesWhenTheyAreScattered) {
  SlowCalls calls;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(calls.again(kDear));
    if (i % 9 == 0) {
      EXPECT_FALSE(calls.again(kDear)) << "two at once";
    }
    for (int cheap = 0; cheap < 16; ++cheap) EXPECT_FALSE(calls.again(0));
  }
}

TEST(SlowCalls, AreThoseThatTakeTheThreadsOwnTimeAgainAndAgain) {
  TimedCalls calls;
  for (int i = 0; i < 4; ++i) {  // the first long one is not measured exactly
    calls.timed(work);
    EXPECT_FALSE(calls.too_slow());
  }
  calls.timed(work);
  EXPECT_TRUE(calls.too_slow());
}

TEST(SlowCalls, AreNotThoseThatABusyHostKeepsFromACore) {
  TimedCalls calls;
  for (int i = 0; i < 10; ++i) calls.timed(wait);
  EXPECT_FALSE(calls.too_slow());
}

TEST(SlowCalls, OfAUserTwiceAreHeldAgainstWhoConnectsNext) {
  constexpr std::int64_t kSecond = 1'000'000'000, kAskance = SlowUser::kAskanceNs;
  SlowUser user;
  EXPECT_FALSE(user.askance(0) || user.newcomers_apart(0));
  user.slow(kSecond);
  EXPECT_TRUE(user.askance(kSecond + kAskance - 1));
  EXPECT_FALSE(user.newcomers_apart(2 * kSecond)) << "a pause of the machine";
  user.slow(3 * kSecond);
  EXPECT_TRUE(user.newcomers_apart(3 * kSecond + kAskance - 1));
  EXPECT_FALSE(user.newcomers_apart(3 * kSecond + kAskance));
  user.slow(30 * kSecond);
  EXPECT_TRUE(user.askance(31 * kSecond));
  EXPECT_FALSE(user.newcomers_apart(31 * kSecond)) << "long after the others";
}

TEST(SlowCalls, AreForgottenWhenTheyStop) {
  TimedCalls calls;
  for (int round = 0; round < 3; ++round) {
    calls.timed(work);
    if (round > 0) continue;
    calls.timed(work);
    for (int i = 0; i < 2000; ++i) calls.timed([] {});
  }
  EXPECT_FALSE(calls.too_slow());
}

}  // namespace
}  // namespace leat::daemon
