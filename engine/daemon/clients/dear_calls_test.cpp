#include "engine/daemon/clients/dear_calls.h"

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

TEST(DearCalls, AreThoseThatTakeTheThreadsOwnTimeAgainAndAgain) {
  TimedCalls calls;
  calls.timed(work);  // the first long one is not measured exactly
  EXPECT_FALSE(calls.too_dear());
  calls.timed(work);
  EXPECT_FALSE(calls.too_dear()) << "once may be a pause of the machine";
  calls.timed(work);
  EXPECT_TRUE(calls.too_dear());
}

TEST(DearCalls, AreNotThoseThatABusyHostKeepsFromACore) {
  TimedCalls calls;
  for (int i = 0; i < 10; ++i) calls.timed(wait);
  EXPECT_FALSE(calls.too_dear());
}

TEST(DearCalls, AreForgottenWhenTheyStop) {
  TimedCalls calls;
  for (int round = 0; round < 3; ++round) {
    calls.timed(work);
    if (round > 0) continue;
    calls.timed(work);
    for (int i = 0; i < 2000; ++i) calls.timed([] {});
  }
  EXPECT_FALSE(calls.too_dear());
}

}  // namespace
}  // namespace leat::daemon
