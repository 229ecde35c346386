// A picture in memory as Cairo draws on it, and what becomes of frames and videos' pictures. Pure functions; no errors:
// what is no picture (tensors) becomes a dark sheet.
#pragma once

#include <cstdint>
#include <vector>

#include "leat/leat.h"

namespace leat::tools::draw {

struct Colour {
  std::uint8_t r = 255, g = 255, b = 255;
  friend bool operator==(const Colour&, const Colour&) = default;
};
[[nodiscard]] constexpr std::uint32_t pixel_of(Colour c) noexcept {
  return 0xff000000U | std::uint32_t{c.r} << 16 | std::uint32_t{c.g} << 8 | c.b;
}
[[nodiscard]] constexpr Colour colour_of(std::uint32_t pixel) noexcept {
  return {static_cast<std::uint8_t>(pixel >> 16), static_cast<std::uint8_t>(pixel >> 8),
          static_cast<std::uint8_t>(pixel)};
}
// `share` (0..1) of `over` on `under`.
[[nodiscard]] std::uint32_t blend(std::uint32_t under, Colour over, double share) noexcept;

struct Size {
  std::uint32_t width = 0, height = 0;  // pixels
  friend bool operator==(const Size&, const Size&) = default;
};

struct Picture {
  Size size;
  std::vector<std::uint32_t> pixels;  // 0xffRRGGBB, tight rows
  explicit Picture(Size s = {}, Colour paper = {0, 0, 0})
      : size(s), pixels(std::size_t{s.width} * s.height, pixel_of(paper)) {}
  [[nodiscard]] std::uint32_t& at(std::size_t x, std::size_t y) { return pixels[y * size.width + x]; }
  [[nodiscard]] std::uint32_t at(std::size_t x, std::size_t y) const { return pixels[y * size.width + x]; }
};

// A copy of the frame's pixels, whatever its format, in the colours that its color_range and color_matrix say.
[[nodiscard]] Picture picture_of(const leat_frame& frame);
[[nodiscard]] Picture resized(const Picture& picture, Size to);
// As large as fits, in the middle of a black picture of that size.
[[nodiscard]] Picture letterboxed(const Picture& picture, Size to);
// `part` comes to (x, y) of `on`; what would lie outside is left out.
void paste(Picture& on, const Picture& part, std::uint32_t x, std::uint32_t y);

// Planes of 4:2:0 with these strides, of the picture's even part.
struct Planes {
  std::uint8_t *y, *u, *v;
  int y_stride, u_stride, v_stride;
};
void to_i420(const Picture& picture, const Planes& planes);

}  // namespace leat::tools::draw
