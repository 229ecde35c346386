// The inner loops of pre-processing: one target row from two source rows, resampled, colour-converted and normalised.
// Eight pixels at a time with AVX2 where the processor has it, else one at a time; both give the same values to about
// 1e-6. Plain functions on plain data; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::exec {

// For each target pixel along one direction: the byte offset of the first of its two source pixels, and the weight of
// the second, which lies `step` bytes further (0 where the source has one pixel only; the weight is 0 then).
struct PixelTaps {
  std::vector<std::int32_t> offsets;
  std::vector<float> weights;
  std::int32_t step = 0;

  void reserve(std::uint32_t count) { offsets.resize(count), weights.resize(count); }
  // Target pixel i lies at origin + (i + 0.5) * scale - 0.5, kept within 0..size-1. Precondition: count <= what is
  // reserved.
  void lay(float origin, float scale, std::uint32_t count, std::uint32_t size, std::uint32_t pixel_bytes) noexcept;
};

// out[c] = clamp(c[0] * s0 + c[1] * s1 + c[2] * s2 + c[3], low, high): matrix, range, mean and deviation folded
// together.
struct Colour {
  float factors[3][4] = {};
  float low[3] = {}, high[3] = {};
};

// The two source rows of each component, the weight of the second row, where to write, and how.
struct RowJob {
  const std::uint8_t* first[3] = {};  // planes 0, 1, 2 (1 and 2 unused where the format lacks them)
  const std::uint8_t* second[3] = {};
  float weight = 0, chroma_weight = 0;
  const std::uint8_t* end = nullptr;  // of the slot: nothing at or behind it is read
  const PixelTaps* columns = nullptr;
  const PixelTaps* chroma_columns = nullptr;
  const Colour* colour = nullptr;
  std::uint32_t width = 0;     // target pixels
  std::uint32_t channels = 3;  // outputs: 1 or 3
  float* out[3] = {};
};

enum class Arrangement : std::uint8_t { gray, packed, semi_planar, planar };  // GRAY8; RGB24, BGR24; NV12; I420
using RowFunction = void (*)(const RowJob&) noexcept;

// What this processor runs fastest; the portable one is kept for comparison in tests.
[[nodiscard]] RowFunction row_function(Arrangement arrangement) noexcept;
[[nodiscard]] RowFunction portable_row_function(Arrangement arrangement) noexcept;

}  // namespace leat::exec
