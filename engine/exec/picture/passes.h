// The passes of a resize with weights.h: rows put together, one row resized along its length, added to a target row,
// and colour at the end. Several values at a time with AVX2 where the processor has it, else one at a time; whole
// numbers are the same then, floats to about 1e-6. Plain functions on plain data; any thread; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/exec/picture/resample.h"
#include "engine/exec/picture/weights.h"

namespace leat::exec {

inline constexpr int kPartBits = 7;        // a byte is 1 << kPartBits in the rows between the passes
inline constexpr std::size_t kSpare = 32;  // values after a row that the next pass may read; their weights are 0

// Bytes of `count` rows, weighted, or of one row as they are: out[i] for i from begin up to end.
struct CombineJob {
  const std::uint8_t* row = nullptr;  // the first
  std::size_t stride = 0;             // to the next
  std::uint32_t count = 1;
  const std::int16_t* weights = nullptr;  // an even number
  std::size_t begin = 0, end = 0;
  std::int16_t* out = nullptr;
};

// Such a row, its components interleaved, into floats (0..255) for each component.
struct AcrossJob {
  const std::int16_t* row = nullptr;
  const ColumnWeights* columns = nullptr;
  std::uint32_t width = 0;    // target pixels
  float low = 0, high = 255;  // of what comes out
  float* out[3] = {};
};

struct Passes {
  void (*combine)(const CombineJob&) noexcept;
  void (*across[3])(const AcrossJob&) noexcept;  // [components - 1]
  // to = weight * from, or more of it: to += weight * from.
  void (*down)(const float* from, float weight, bool first, std::uint32_t width, float* to) noexcept;
  // out[c] of s[0..components): matrix, range, mean and deviation. out[c] may be s[c].
  void (*colour)(const float* const s[3], std::uint32_t components, const Colour& colour, std::uint32_t channels,
                 std::uint32_t width, float* const out[3]) noexcept;
};
inline constexpr std::uint32_t kGroups[] = {8, 8, 4};  // taps that across[] reads at a time

// What this processor runs fastest; the portable ones are kept for comparison in tests.
[[nodiscard]] const Passes& passes() noexcept;
[[nodiscard]] const Passes& portable_passes() noexcept;

}  // namespace leat::exec
