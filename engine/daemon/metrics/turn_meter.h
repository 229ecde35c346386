// How long the scheduler thread's turns take, every one of them: wall time, and for the long ones the thread's own CPU
// time, which tells a turn that did too much from one that was kept waiting for a core.
//
// The CPU clock costs a system call, so it is read at the end of a turn at most every kCheckpointNs: what is told of a
// turn is too much by at most what the thread ran since, which is less than that.
// Thread rule: the scheduler thread.
#pragma once

#include <cstdint>

#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/metrics/slow_calls.h"

namespace leat::daemon {

class TurnMeter {
 public:
  explicit TurnMeter(Metrics& metrics) noexcept : metrics_(metrics) {}
  void begin(std::int64_t now) noexcept;  // on the thread, before its first turn
  void turned(std::int64_t from_ns, std::int64_t to_ns, bool worked) noexcept;
  // CPU time since `from_ns`, a moment of this turn, at least: before it the thread ran no longer than time passed.
  [[nodiscard]] std::int64_t min_own_since_ns(std::int64_t from_ns) const noexcept {
    return own_cpu_ns() - own_at_check_ns_ - (from_ns - checked_ns_);
  }

 private:
  static constexpr std::int64_t kStallNs = 1'000'000;
  static constexpr std::int64_t kCheckpointNs = 100'000;

  Metrics& metrics_;
  std::int64_t longest_ns_ = 0, longest_own_ns_ = 0;
  std::int64_t checked_ns_ = 0, own_at_check_ns_ = 0;
};

}  // namespace leat::daemon
