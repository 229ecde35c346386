// What each target pixel takes of its source along one direction, laid out once for a window. Whole weights add up to
// kOne, whatever each is rounded to. Plain data; any thread; lay() allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exec/picture/kernel.h"

namespace leat::exec {

inline constexpr int kOneBits = 14;
inline constexpr std::int32_t kOne = 1 << kOneBits;

// Along a row. Every target pixel has `taps` weights, of which those outside its reach are 0. All of its taps lie
// within the row; where that has fewer pixels than taps, within those and less than a group after them.
struct ColumnWeights {
  std::vector<std::int32_t> first;    // [target pixel]: the source pixel of its first tap
  std::vector<std::int16_t> weights;  // [target pixel * taps + tap]
  std::uint32_t taps = 0;             // a multiple of the group
  std::uint32_t begin = 0, end = 0;   // source pixels that are read

  void reserve(std::uint32_t count, std::uint32_t resize);
  // half: of a plane of half the axis' size. group: taps are read so many at a time. Precondition: count <= reserved.
  void lay(const Axis& axis, std::uint32_t count, bool half, std::uint32_t group) noexcept;
};

// Down the rows: source rows [first, end) of each target row, neither of which falls from one to the next.
struct RowWeights {
  std::vector<std::uint32_t> first, end;
  std::vector<std::size_t> at;      // of the first row's weight
  std::vector<float> weights;       // add up to 1
  std::vector<std::int16_t> whole;  // the same, an even number for each target row

  void reserve(std::uint32_t count, std::uint32_t resize);
  void lay(const Axis& axis, std::uint32_t count, bool half) noexcept;
  [[nodiscard]] float weight(std::uint32_t target, std::uint32_t row) const noexcept {
    return weights[at[target] + row - first[target]];
  }
};

}  // namespace leat::exec
