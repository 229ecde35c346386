// Random numbers that are the same on every machine: integer generators, and the few real functions made of the
// operations that IEEE 754 rounds exactly (+ - * / sqrt), so that no mathematical library is asked. Compiled without
// contraction.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace leat::sim {

constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Natural logarithm of x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)).
inline double ln(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++e;
  }
  const double z = (m - 1) / (m + 1), z2 = z * z;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * z2 + 1.0 / k;
  return 2 * z * sum + e * 0.6931471805599453;
}

// e^x for |x| < 700: x = k ln 2 + r, e^r by its series.
inline double exp(double x) noexcept {
  const double scaled = x * 1.4426950408889634;
  const auto k = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = x - k * 0.6931471805599453;
  double sum = 1;
  for (int i = 18; i >= 1; --i) sum = 1 + r * sum / i;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(mix(seed)) {}
  std::uint64_t bits() noexcept { return mix(state_ += 0x9E3779B97F4A7C15u); }
  double uniform() noexcept { return static_cast<double>((bits() >> 11) + 1) * 0x1p-53; }  // (0, 1]
  std::uint64_t below(std::uint64_t n) noexcept { return bits() % n; }
  double exponential() noexcept { return -ln(uniform()); }
  double normal() noexcept {  // Marsaglia's polar method; the second value is not kept
    for (;;) {
      const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, s = u * u + v * v;
      if (s > 0 && s < 1) return u * std::sqrt(-2 * ln(s) / s);
    }
  }
  double gamma(double shape) noexcept {  // Marsaglia and Tsang; mean = shape
    if (shape < 1) return gamma(shape + 1) * exp(ln(uniform()) / shape);
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal(), t = 1 + c * x, v = t * t * t;
      if (v > 0 && ln(uniform()) < 0.5 * x * x + d - d * v + d * ln(v)) return d * v;
    }
  }
  std::uint32_t poisson(double mean) noexcept {  // small means only: counts exponentials
    std::uint32_t n = 0;
    for (double sum = exponential(); sum < mean; sum += exponential()) ++n;
    return n;
  }

 private:
  std::uint64_t state_;
};

}  // namespace leat::sim
