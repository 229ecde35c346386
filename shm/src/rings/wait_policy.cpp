#include "shm/src/rings/wait_policy.h"

#include <sched.h>

namespace leat::shm {

namespace {
inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

WaitPolicy choose_wait_policy(Role role, std::uint32_t cores, bool pinned_alone, bool tiny_hops) noexcept {
  // A yield is about 0.3 us when nobody else wants the core: 200 tries cover a hop of some 50 us, about what a wake
  // costs.
  constexpr std::uint32_t kYields = 200;
  // A poll is 50 to 100 ns: about 100 us, twice what a wake costs, and nothing when really idle.
  constexpr std::uint32_t kLinger = 1500;
  const WaitPolicy park, yield{.mode = WaitMode::yield, .yields = kYields},
      spin{.mode = WaitMode::spin, .pauses = 1, .linger = kLinger};
  if (cores < 2) return tiny_hops ? yield : park;  // yielding hands the one core to the peer
  if (role == Role::scheduler && pinned_alone) return spin;
  return tiny_hops ? yield : park;
}

bool Waiter::should_park(bool in_flight) noexcept {
  switch (policy_.mode) {
    case WaitMode::park:
      return true;
    case WaitMode::yield:
      if (tries_++ >= policy_.yields) return true;
      sched_yield();
      return false;
    case WaitMode::spin:
      if (in_flight) tries_ = 0;
      if (!in_flight && tries_++ >= policy_.linger) return true;
      for (std::uint32_t i = 0; i < policy_.pauses; ++i) cpu_pause();
      return false;
  }
  return true;
}

}  // namespace leat::shm
