// The one clock of every time in a segment and on a socket.
#pragma once

#include <cstdint>
#include <ctime>

namespace leat::shm {

// CLOCK_MONOTONIC in nanoseconds. Any thread; no system call where the kernel offers the vDSO.
inline std::int64_t monotonic_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace leat::shm
