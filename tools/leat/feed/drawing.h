// Boxes and labels on a picture, for `leat feed --annotate`: plain I420, a built-in 5x7 font. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "leat/leat.h"
#include "leat/result_types.h"

namespace leat::tools {

struct Canvas {
  std::uint32_t width = 0, height = 0;  // even
  std::vector<std::uint8_t> y, u, v;    // tight planes of 4:2:0
};

struct Ink {
  std::uint8_t y = 255, u = 128, v = 128;
};

[[nodiscard]] Ink ink_of_rgb(std::uint8_t r, std::uint8_t g, std::uint8_t b) noexcept;

// A copy of the frame's pixels, whatever its format.
[[nodiscard]] Canvas canvas_of(const leat_frame& frame);

// Everything is clipped to the canvas. Coordinates are pixels.
void draw_box(Canvas& canvas, float x0, float y0, float x1, float y1, int thickness, Ink ink);
// A straight line of that thickness.
void draw_line(Canvas& canvas, float x0, float y0, float x1, float y1, int thickness, Ink ink);
// The cells of a mask whose bit is set, as a light veil; its grid covers the box.
void draw_mask(Canvas& canvas, const leat_mask& mask, const std::uint8_t* bits, Ink ink);
// Text on a dark ground, its top left corner at (x, y); moved inside where it would leave the canvas. scale: pixels per
// dot.
void draw_text(Canvas& canvas, int x, int y, std::string_view text, int scale, Ink ink);
[[nodiscard]] int text_width(std::string_view text, int scale) noexcept;
[[nodiscard]] int text_height(int scale) noexcept;

}  // namespace leat::tools
