#include "tools/leat/feed/source/upright.h"

#include <libyuv.h>

#include <cstdlib>

namespace leat::tools {

Turn turn_of(const std::int32_t matrix[9]) {
  // A point (p, q) of the stored picture, p to the right and q downwards, is shown at (a p + c q, b p + d q).
  const std::int64_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  if (std::abs(b) + std::abs(c) > std::abs(a) + std::abs(d)) {
    if (c < 0) return {.mirrored = b < 0, .clockwise_degrees = 90};
    return {.mirrored = b > 0, .clockwise_degrees = 270};
  }
  if (d < 0) return {.mirrored = a > 0, .clockwise_degrees = 180};
  return {.mirrored = a < 0, .clockwise_degrees = 0};
}

void Upright::write(const StoredPicture& from, const leat_frame& slot) {
  // The slot decides the size: what is one more than even is left out at the right and below.
  const int width = static_cast<int>(turn_.swaps_sides() ? slot.height : slot.width);
  const int height = static_cast<int>(turn_.swaps_sides() ? slot.width : slot.height);
  StoredPicture source = from;
  if (turn_.mirrored) {
    const int half = (width + 1) / 2, half_rows = (height + 1) / 2;
    mirrored_.resize(static_cast<std::size_t>(width) * height + 2UL * half * half_rows);
    std::uint8_t* const y = mirrored_.data();
    std::uint8_t* const u = y + static_cast<std::size_t>(width) * height;
    std::uint8_t* const v = u + static_cast<std::size_t>(half) * half_rows;
    libyuv::I420Mirror(from.planes[0], from.strides[0], from.planes[1], from.strides[1], from.planes[2],
                       from.strides[2], y, width, u, half, v, half, width, height);
    source = {.planes = {y, u, v}, .strides = {width, half, half}, .width = width, .height = height};
  }
  libyuv::I420Rotate(source.planes[0], source.strides[0], source.planes[1], source.strides[1], source.planes[2],
                     source.strides[2], slot.planes[0], static_cast<int>(slot.strides[0]), slot.planes[1],
                     static_cast<int>(slot.strides[1]), slot.planes[2], static_cast<int>(slot.strides[2]), width,
                     height, static_cast<libyuv::RotationMode>(turn_.clockwise_degrees));
}

}  // namespace leat::tools
