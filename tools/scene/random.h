// SplitMix64: a seeded stream of numbers that is the same everywhere (the standard library's distributions are not).
#pragma once

#include <cstdint>

namespace leat::scene {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}
  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  constexpr double between(double low, double high) noexcept { return low + (high - low) * unit(); }
  constexpr std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>(unit() * n); }

 private:
  std::uint64_t state_;
};

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  return Random(a ^ (b * 0xd1342543de82ef95u + 1)).next();
}

}  // namespace leat::scene
