#include "tools/leat/feed/source/upright.h"

#include <libyuv.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace leat::tools {
namespace {

// One plane of pixels of so many bytes, in squares, so that what a column of the stored picture touches stays cached.
template <std::size_t kBytes>
void turn_plane(const Turn& turn, const std::uint8_t* from, int from_stride, std::uint8_t* to, int to_stride, int width,
                int height) {
  constexpr int kSquare = 32;
  const int stored_width = turn.swaps_sides() ? height : width, stored_height = turn.swaps_sides() ? width : height;
  const auto stored_at = [&](int x, int y) {  // of the stored picture, what is shown at (x, y)
    int p = 0, q = 0;
    switch (turn.clockwise_degrees) {
      case 90:
        p = y, q = stored_height - 1 - x;
        break;
      case 180:
        p = stored_width - 1 - x, q = stored_height - 1 - y;
        break;
      case 270:
        p = stored_width - 1 - y, q = x;
        break;
      default:
        p = x, q = y;
        break;
    }
    if (turn.mirrored) p = stored_width - 1 - p;
    return std::int64_t{q} * from_stride + std::int64_t{p} * static_cast<int>(kBytes);
  };
  const std::int64_t step = width > 1 ? stored_at(1, 0) - stored_at(0, 0) : 0;
  for (int top = 0; top < height; top += kSquare)
    for (int left = 0; left < width; left += kSquare)
      for (int y = top; y < std::min(top + kSquare, height); ++y) {
        const std::uint8_t* source = from + stored_at(left, y);
        std::uint8_t* pixel = to + std::int64_t{y} * to_stride + std::int64_t{left} * static_cast<int>(kBytes);
        for (int x = left; x < std::min(left + kSquare, width); ++x, pixel += kBytes, source += step)
          std::memcpy(pixel, source, kBytes);
      }
}

}  // namespace

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
  if (slot.format == LEAT_FORMAT_i420) return write_i420(from, slot);
  const auto turn = slot.format == LEAT_FORMAT_gray8 ? turn_plane<1> : turn_plane<3>;
  turn(turn_, from.planes[0], from.strides[0], slot.planes[0], static_cast<int>(slot.strides[0]),
       static_cast<int>(slot.width), static_cast<int>(slot.height));
}

void Upright::write_i420(const StoredPicture& from, const leat_frame& slot) {
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
