// System calls whose time a peer decides: a wake walks all who poll the descriptor, and a peer can poll it from
// thousands of places. What counts is what they take of the calling thread's own CPU time, so that a thread which was
// kept from its core accuses nobody. A pause of the machine (interrupts, a hypervisor) is charged to the thread that it
// hits, and on a busy host they come in swarms, so neither one slow call nor a second soon after proves anything; where
// a crowd waits nearly every call is slow. Thread rule: values; one thread each.
#pragma once

#include <time.h>

#include <cstdint>

#include "shm/src/rings/clock.h"
#include "tools/base/text/sanitized.h"

namespace leat::daemon {

inline std::int64_t own_cpu_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

class SlowCalls {
 public:
  static constexpr std::int64_t kSlowNs = kSanitized ? 20'000'000 : 1'000'000;  // its own work is charged to the call
  // True: the peer is to blame. Four slow ones in a row, or every third of some more.
  [[nodiscard]] bool again(std::int64_t own_ns) noexcept {
    if (own_ns <= kSlowNs) {
      suspicion_ -= suspicion_ > 0 ? 1 : 0;
      return false;
    }
    suspicion_ += kOfOne;
    if (suspicion_ <= 3 * kOfOne) return false;
    suspicion_ = 0;
    return true;
  }

 private:
  static constexpr int kOfOne = 8;  // as many calls that are not slow take one back
  int suspicion_ = 0;
};

// A user of whose calls one took long. His bells that are apart (client_bells.cpp) stay so for a while. Those of
// clients that connect meanwhile are apart from the beginning only if there was a second: one alone was most likely a
// pause.
class SlowUser {
 public:
  static constexpr std::int64_t kAskanceNs = 10'000'000'000;
  void slow(std::int64_t now_ns) noexcept {
    if (askance(now_ns)) newcomers_until_ns_ = now_ns + kAskanceNs;
    until_ns_ = now_ns + kAskanceNs;
  }
  [[nodiscard]] bool askance(std::int64_t now_ns) const noexcept { return now_ns < until_ns_; }
  [[nodiscard]] bool newcomers_apart(std::int64_t now_ns) const noexcept { return now_ns < newcomers_until_ns_; }

 private:
  std::int64_t until_ns_ = 0, newcomers_until_ns_ = 0;
};

// The same of a peer with whom calls are frequent: an honest one costs two looks at the clock a call, and only behind a
// call that was long are the next ones measured exactly.
class TimedCalls {
 public:
  template <class Call>
  void timed(const Call& call) noexcept {
    const std::int64_t own = measured_ > 0 ? own_cpu_ns() : 0, from = shm::monotonic_ns();
    call();
    const bool was_long = shm::monotonic_ns() - from > SlowCalls::kSlowNs;
    if (measured_ > 0) {
      too_slow_ = calls_.again(was_long ? own_cpu_ns() - own : 0) || too_slow_;
      --measured_;
    }
    if (was_long) measured_ = kMeasured;
  }
  [[nodiscard]] bool too_slow() const noexcept { return too_slow_; }

 private:
  static constexpr int kMeasured = 1000;  // calls behind a long one
  SlowCalls calls_;
  int measured_ = 0;
  bool too_slow_ = false;
};

}  // namespace leat::daemon
