#include "tools/leat/feed/small_grey.h"

#include <algorithm>

namespace leat::tools {

SmallGrey::SmallGrey(const PictureFormat& format, std::uint32_t widest)
    : scale_(std::max(1u, (format.width + widest - 1) / widest)),
      width_(format.width / scale_),
      height_(format.height / scale_),
      pixels_(std::size_t{width_} * height_),
      sums_(width_) {}

void SmallGrey::take(const leat_frame& picture) {
  const bool colours = picture.format == LEAT_FORMAT_rgb24 || picture.format == LEAT_FORMAT_bgr24;
  const std::uint32_t red = picture.format == LEAT_FORMAT_rgb24 ? 77 : 29, blue = 106 - red;
  for (std::uint32_t y = 0; y < height_; ++y) {
    std::fill(sums_.begin(), sums_.end(), 0U);
    for (std::uint32_t v = 0; v < scale_; ++v) {
      const std::uint8_t* row = picture.planes[0] + std::size_t{y * scale_ + v} * picture.strides[0];
      for (std::uint32_t x = 0; x < width_; ++x) {
        for (std::uint32_t u = 0; u < scale_; ++u) {
          const std::size_t i = x * scale_ + u;
          sums_[x] += colours ? (red * row[3 * i] + 150U * row[3 * i + 1] + blue * row[3 * i + 2]) >> 8 : row[i];
        }
      }
    }
    for (std::uint32_t x = 0; x < width_; ++x)
      pixels_[std::size_t{y} * width_ + x] = static_cast<std::uint8_t>(sums_[x] / (scale_ * scale_));
  }
}

}  // namespace leat::tools
