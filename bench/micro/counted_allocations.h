// Counts what a program with one thread allocates, by replacing operator new: for its main source alone.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace leat::bench {
extern std::uint64_t allocations;
std::uint64_t allocations = 0;
}  // namespace leat::bench

[[gnu::noinline]] void* operator new(std::size_t n) {
  ++leat::bench::allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
