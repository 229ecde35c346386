// System calls on one peer's descriptor whose cost that peer decides: a wake walks all who poll the descriptor, and a
// peer can poll it from thousands of places. What counts is the thread's own CPU time, so that a busy host, which takes
// the core away in the middle of a call, makes nobody dear. An honest peer costs two looks at the clock a call; only
// behind a call that was long are the next ones measured exactly. Thread rule: one thread.
#pragma once

#include <cstdint>

#include "engine/daemon/turn_meter.h"
#include "shm/src/clock.h"

namespace leat::daemon {

class DearCalls {
 public:
  template <class Call>
  void timed(const Call& call) noexcept {
    const std::int64_t own = measured_ > 0 ? TurnMeter::own_ns() : 0, from = shm::monotonic_ns();
    call();
    const bool was_long = shm::monotonic_ns() - from > kDearNs;
    if (measured_ > 0 && was_long && TurnMeter::own_ns() - own > kDearNs) ++dear_;
    if (was_long)
      measured_ = kMeasured;
    else if (measured_ > 0 && --measured_ == 0)
      dear_ = 0;
  }
  [[nodiscard]] bool too_dear() const noexcept { return dear_ >= kMost; }

 private:
  static constexpr std::int64_t kDearNs = 1'000'000;
  static constexpr int kMeasured = 1000, kMost = 2;  // calls measured behind a long one; of them dear
  int measured_ = 0, dear_ = 0;
};

}  // namespace leat::daemon
