// What a run has cost: the calling thread's CPU time.
#pragma once

#include <ctime>

namespace leat::sim {

inline double cpu_seconds() noexcept {
  timespec t{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace leat::sim
