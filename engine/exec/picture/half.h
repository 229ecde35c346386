// IEEE 754 half precision and bfloat16 to single and back (round to nearest, ties to even). Pure; any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace leat::exec {

constexpr float float_of_half(std::uint16_t h) noexcept {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16, exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // subnormal: mantissa * 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

constexpr std::uint16_t half_of_float(float f) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest >= 0x7f800000u)  // infinite, or not a number
    return static_cast<std::uint16_t>(sign | 0x7c00u | (rest > 0x7f800000u ? 0x200u : 0u));
  if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  const auto rounded = [](std::uint32_t value, std::uint32_t shift) {
    const std::uint32_t half = (1u << (shift - 1)) - 1 + ((value >> shift) & 1u);
    return (value + half) >> shift;
  };
  if (rest < 0x38800000u) {  // subnormal or zero
    const std::uint32_t exponent = rest >> 23;
    if (exponent < 102) return static_cast<std::uint16_t>(sign);
    return static_cast<std::uint16_t>(sign | rounded((rest & 0x7fffffu) | 0x800000u, 126 - exponent));
  }
  return static_cast<std::uint16_t>(sign | rounded(rest - 0x38000000u, 13));
}

constexpr float float_of_bfloat16(std::uint16_t b) noexcept { return std::bit_cast<float>(std::uint32_t{b} << 16); }

}  // namespace leat::exec
