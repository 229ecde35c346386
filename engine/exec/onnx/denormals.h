// Denormal floats take a processor ten times the time of others or more, and whoever sends a frame can put them there.
// So no thread that runs models computes with them: it takes them for zero and makes zero of them.
//
// What a thread starts has its setting: called before anything else, this holds for the whole process, threads of the
// runtime and of plug-ins included. Numbers of 1e-37 and above are what they were, to the bit.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace leat::exec {

inline void take_denormals_for_zero() noexcept {
#if defined(__SSE2__)
  constexpr unsigned kDenormalsAreZero = 1U << 6, kFlushToZero = 1U << 15;
  _mm_setcsr(_mm_getcsr() | kDenormalsAreZero | kFlushToZero);
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;  // inputs too
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
}

}  // namespace leat::exec
