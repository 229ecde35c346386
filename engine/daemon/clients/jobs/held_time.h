// For how long a thread has been held by what it does: on a core, or waiting inside the kernel. For how long it waited
// for a core is the host's doing, and accuses nobody: beside builds a step of microseconds can take more than a second.
// What is counted is seen by looks: between two of them, all time if the thread waits in the kernel at the second, else
// what it was on a core for; and of a pause between looks never more than kMaxLookNs. Thread rule: begin() on the
// thread itself; look() on any while that lives, one at a time.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace leat::daemon {

class HeldTime {
 public:
  static constexpr std::int64_t kLookNs = 50'000'000, kMaxLookNs = 2 * kLookNs;  // how often to look

  void begin(std::int64_t now_ns) noexcept;
  std::int64_t look(std::int64_t now_ns) noexcept;  // since begin(), ns
  [[nodiscard]] std::int64_t next_look_ns() const noexcept { return looked_ns_ + kLookNs; }

 private:
  [[nodiscard]] std::int64_t cpu_ns() const noexcept;
  [[nodiscard]] bool wants_a_core() const noexcept;

  pid_t thread_ = 0;
  clockid_t clock_{};
  std::int64_t looked_ns_ = 0, cpu_ns_ = 0, held_ns_ = 0;
};

}  // namespace leat::daemon
