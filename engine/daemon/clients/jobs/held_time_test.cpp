// HeldTime: what waits in the kernel and what keeps a core busy is counted, and not for how long a core was waited for.
#include "engine/daemon/clients/jobs/held_time.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "engine/daemon/metrics/slow_calls.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kPatienceNs = 60'000'000'000;

// On a core for so long.
void spin(std::int64_t ns) {
  const std::int64_t from = own_cpu_ns();
  while (own_cpu_ns() - from < ns) {
  }
}

// A thread that does this until told to end, looked at again and again, each time behind some work of our own.
struct Seen {
  std::int64_t held_ns = 0, passed_ns = 0;
};
Seen look_at(const std::function<void(std::future<void> ends)>& does, const std::function<bool(const Seen&)>& enough) {
  HeldTime held;
  std::promise<void> begun, ends;
  std::thread thread([&] {
    held.begin(shm::monotonic_ns());
    begun.set_value();
    does(ends.get_future());
  });
  begun.get_future().wait();
  Seen out;
  const std::int64_t from = shm::monotonic_ns();
  while (!enough(out) && out.passed_ns < kPatienceNs) {
    spin(5'000'000);
    const std::int64_t now = shm::monotonic_ns();
    out.held_ns = held.look(now);
    out.passed_ns = now - from;
  }
  ends.set_value();
  thread.join();
  return out;
}
void works_until(const std::future<void>& ends) {
  while (ends.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
  }
}

TEST(HeldTime, WaitingInTheKernelIsCounted) {
  const auto enough = [](const Seen& s) { return s.held_ns >= 100'000'000; };
  EXPECT_TRUE(enough(look_at([](std::future<void> ends) { ends.wait(); }, enough)));
}

TEST(HeldTime, WorkOnACoreIsCounted) {
  const auto enough = [](const Seen& s) { return s.held_ns >= 100'000'000; };
  EXPECT_TRUE(enough(look_at(works_until, enough)));
}

// On one core beside one that is always there and comes first.
TEST(HeldTime, WaitingForACoreIsNot) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const Seen seen = look_at(
      [](const std::future<void>& ends) {
        const sched_param none{};
        (void)::sched_setscheduler(0, SCHED_IDLE, &none);
        works_until(ends);
      },
      [](const Seen& s) { return s.passed_ns >= 200'000'000; });
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_LT(seen.held_ns, seen.passed_ns / 4);
}

TEST(HeldTime, OfAPauseBetweenLooksLittleIsCounted) {
  HeldTime held;
  std::int64_t now = shm::monotonic_ns();
  std::promise<void> begun, ends;
  std::thread thread([&] {
    held.begin(now);
    begun.set_value();
    ends.get_future().wait();
  });
  begun.get_future().wait();
  now += 10'000'000'000;
  EXPECT_LE(held.look(now), HeldTime::kMaxLookNs);
  ends.set_value();
  thread.join();
}

}  // namespace
}  // namespace leat::daemon
