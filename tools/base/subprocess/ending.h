// How a process ended, and limits of time as points of the steady clock. Thread rule: any.
#pragma once

#include <chrono>
#include <string>

namespace leat::subprocess {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
[[nodiscard]] inline Deadline after(std::chrono::milliseconds limit) { return Clock::now() + limit; }

struct Ending {
  enum class How : unsigned char { exited, signalled, timed_out } how = How::exited;
  int code = 0;  // exit status, or signal
  [[nodiscard]] bool clean() const noexcept { return how == How::exited && code == 0; }
  [[nodiscard]] std::string text() const;  // "ended with status 3", "was killed by signal 9 (Killed)", ...
};

// From what waitpid() stored.
[[nodiscard]] Ending ending_of(int status) noexcept;

}  // namespace leat::subprocess
