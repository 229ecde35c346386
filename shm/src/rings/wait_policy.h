// How each kind of thread waits, chosen once, at start, by the number of cores it may use.
//
// Measured rules: two spinners on one core cost each other whole time slices, and spinning before parking delays the
// very peer one waits for. So: one spinner at most (the scheduler, on a core of its own, and only while work is in
// flight); everybody else parks at once, or yields for hops shorter than a wake. An idle system makes no wake-ups at
// all.
#pragma once

#include <cstdint>

namespace leat::shm {

enum class Role : std::uint8_t { scheduler, worker, client };

enum class WaitMode : std::uint8_t {
  park,   // block in the kernel at once
  yield,  // sched_yield up to `yields` times, then park: for peers whose answer takes less than a wake
  spin    // poll while work is in flight and `linger` polls longer, then park
};

struct WaitPolicy {
  WaitMode mode = WaitMode::park;
  std::uint32_t yields = 0;  // WaitMode::yield: tries before parking
  std::uint32_t pauses = 0;  // WaitMode::spin: `pause` instructions between polls
  std::uint32_t linger = 0;  // WaitMode::spin: empty polls with nothing in flight before parking: a busy client's next
                             // frame comes sooner than a wake would take
};

// cores: those of the whole host that Leat may use. pinned_alone: nobody else is placed on this thread's core.
// scheduler: spins with >= 2 cores and a core of its own, else it waits like the others: who yields to a worker that
// has much to do gets the core back a time slice later, who is woken, at once. All others: park; yield when `tiny_hops`
// (work under about 20 us, as the emulated zero-time executor's).
WaitPolicy choose_wait_policy(Role role, std::uint32_t cores, bool pinned_alone, bool tiny_hops) noexcept;

// One wait loop's state. Usage:
//   Waiter waiter(policy);
//   for (;;) { if (work()) { waiter.reset(); continue; } if (waiter.should_park(in_flight)) { announce_sleep... park;
//   waiter.reset(); } }
class Waiter {
 public:
  explicit Waiter(const WaitPolicy& policy) noexcept : policy_(policy) {}
  void reset() noexcept { tries_ = 0; }
  // Called when a poll found nothing: pauses or yields and says false, or says true: park now.
  // in_flight: someone else is working and will answer soon.
  bool should_park(bool in_flight) noexcept;

 private:
  WaitPolicy policy_;
  std::uint32_t tries_ = 0;
};

}  // namespace leat::shm
