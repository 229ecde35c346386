#include "shm/src/wait_policy.h"

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

std::uint32_t usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<std::uint32_t>(count) : 1;
}

WaitPolicy choose_wait_policy(Role role, std::uint32_t cores, bool pinned_alone, bool tiny_hops) noexcept {
  // A yield is about 0.3 us when nobody else wants the core: 200 tries cover a hop of some 50 us, about what a wake costs.
  constexpr std::uint32_t kYields = 200;
  if (cores < 2) return {WaitMode::park, 0, 0};
  if (role == Role::scheduler) return pinned_alone ? WaitPolicy{WaitMode::spin, 0, 1} : WaitPolicy{WaitMode::yield, kYields, 0};
  return tiny_hops ? WaitPolicy{WaitMode::yield, kYields, 0} : WaitPolicy{WaitMode::park, 0, 0};
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
      if (!in_flight) return true;
      for (std::uint32_t i = 0; i < policy_.pauses; ++i) cpu_pause();
      return false;
  }
  return true;
}

}  // namespace leat::shm
