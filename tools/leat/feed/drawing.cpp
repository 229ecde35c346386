#include "tools/leat/feed/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace leat::tools {
namespace {

constexpr int kGlyphWidth = 5, kGlyphHeight = 7, kPadding = 2;

// Seven rows of five dots, drawn as text so that they can be read here. Letters are shown in one case.
struct Glyph {
  char letter;
  const char* rows;
};
// clang-format off
constexpr Glyph kGlyphs[] = {
    {'a', " ### " "#   #" "#   #" "#####" "#   #" "#   #" "#   #"}, {'b', "#### " "#   #" "#   #" "#### " "#   #" "#   #" "#### "},
    {'c', " ####" "#    " "#    " "#    " "#    " "#    " " ####"}, {'d', "#### " "#   #" "#   #" "#   #" "#   #" "#   #" "#### "},
    {'e', "#####" "#    " "#    " "#### " "#    " "#    " "#####"}, {'f', "#####" "#    " "#    " "#### " "#    " "#    " "#    "},
    {'g', " ####" "#    " "#    " "#  ##" "#   #" "#   #" " ####"}, {'h', "#   #" "#   #" "#   #" "#####" "#   #" "#   #" "#   #"},
    {'i', " ### " "  #  " "  #  " "  #  " "  #  " "  #  " " ### "}, {'j', "  ###" "   # " "   # " "   # " "   # " "#  # " " ##  "},
    {'k', "#   #" "#  # " "# #  " "##   " "# #  " "#  # " "#   #"}, {'l', "#    " "#    " "#    " "#    " "#    " "#    " "#####"},
    {'m', "#   #" "## ##" "# # #" "# # #" "#   #" "#   #" "#   #"}, {'n', "#   #" "##  #" "##  #" "# # #" "#  ##" "#  ##" "#   #"},
    {'o', " ### " "#   #" "#   #" "#   #" "#   #" "#   #" " ### "}, {'p', "#### " "#   #" "#   #" "#### " "#    " "#    " "#    "},
    {'q', " ### " "#   #" "#   #" "#   #" "# # #" "#  # " " ## #"}, {'r', "#### " "#   #" "#   #" "#### " "# #  " "#  # " "#   #"},
    {'s', " ####" "#    " "#    " " ### " "    #" "    #" "#### "}, {'t', "#####" "  #  " "  #  " "  #  " "  #  " "  #  " "  #  "},
    {'u', "#   #" "#   #" "#   #" "#   #" "#   #" "#   #" " ### "}, {'v', "#   #" "#   #" "#   #" "#   #" " # # " " # # " "  #  "},
    {'w', "#   #" "#   #" "#   #" "# # #" "# # #" "## ##" "#   #"}, {'x', "#   #" " # # " " # # " "  #  " " # # " " # # " "#   #"},
    {'y', "#   #" "#   #" " # # " "  #  " "  #  " "  #  " "  #  "}, {'z', "#####" "    #" "   # " "  #  " " #   " "#    " "#####"},
    {'0', " ### " "#   #" "#  ##" "# # #" "##  #" "#   #" " ### "}, {'1', "  #  " " ##  " "  #  " "  #  " "  #  " "  #  " " ### "},
    {'2', " ### " "#   #" "    #" "  ## " " #   " "#    " "#####"}, {'3', "#### " "    #" "    #" " ### " "    #" "    #" "#### "},
    {'4', "   # " "  ## " " # # " "#  # " "#####" "   # " "   # "}, {'5', "#####" "#    " "#### " "    #" "    #" "#   #" " ### "},
    {'6', " ### " "#    " "#### " "#   #" "#   #" "#   #" " ### "}, {'7', "#####" "    #" "   # " "   # " "  #  " "  #  " "  #  "},
    {'8', " ### " "#   #" "#   #" " ### " "#   #" "#   #" " ### "}, {'9', " ### " "#   #" "#   #" " ####" "    #" "    #" " ### "},
    {'.', "     " "     " "     " "     " "     " " ##  " " ##  "}, {':', "     " " ##  " " ##  " "     " " ##  " " ##  " "     "},
    {'%', "##  #" "##  #" "   # " "  #  " " #   " "#  ##" "#  ##"}, {'-', "     " "     " "     " "#####" "     " "     " "     "},
    {'_', "     " "     " "     " "     " "     " "     " "#####"}, {'/', "    #" "   # " "   # " "  #  " " #   " " #   " "#    "},
    {'(', "   # " "  #  " " #   " " #   " " #   " "  #  " "   # "}, {')', " #   " "  #  " "   # " "   # " "   # " "  #  " " #   "},
    {',', "     " "     " "     " "     " " ##  " "  #  " " #   "}, {'#', " # # " " # # " "#####" " # # " "#####" " # # " " # # "},
};
// clang-format on
static_assert([] {
  for (const Glyph& glyph : kGlyphs) {
    if (std::string_view(glyph.rows).size() != kGlyphWidth * kGlyphHeight) return false;
  }
  return true;
}());

const char* rows_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  for (const Glyph& glyph : kGlyphs) {
    if (glyph.letter == letter) return glyph.rows;
  }
  return nullptr;  // a space
}

void fill(Canvas& canvas, int x0, int y0, int x1, int y1, Ink ink) {
  x0 = std::clamp(x0, 0, static_cast<int>(canvas.width));
  x1 = std::clamp(x1, x0, static_cast<int>(canvas.width));
  y0 = std::clamp(y0, 0, static_cast<int>(canvas.height));
  y1 = std::clamp(y1, y0, static_cast<int>(canvas.height));
  if (x0 == x1) return;
  for (int y = y0; y < y1; ++y)
    std::memset(&canvas.y[static_cast<std::size_t>(y) * canvas.width + static_cast<std::size_t>(x0)], ink.y,
                static_cast<std::size_t>(x1 - x0));
  const std::size_t half = canvas.width / 2, from = static_cast<std::size_t>(x0 / 2),
                    bytes = static_cast<std::size_t>((x1 + 1) / 2) - from;
  for (int y = y0 / 2; y < (y1 + 1) / 2; ++y) {
    std::memset(&canvas.u[static_cast<std::size_t>(y) * half + from], ink.u, bytes);
    std::memset(&canvas.v[static_cast<std::size_t>(y) * half + from], ink.v, bytes);
  }
}

std::uint8_t byte_of(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void planar_from_rgb(const leat_frame& frame, int red, int blue, Canvas& canvas) {
  for (std::uint32_t y = 0; y < canvas.height; ++y) {
    const std::uint8_t* row = frame.planes[0] + std::uint64_t{y} * frame.strides[0];
    for (std::uint32_t x = 0; x < canvas.width; ++x) {
      const std::uint8_t* pixel = row + std::size_t{x} * 3;
      const Ink ink = ink_of_rgb(pixel[red], pixel[1], pixel[blue]);
      canvas.y[std::size_t{y} * canvas.width + x] = ink.y;
      if (y % 2 == 0 && x % 2 == 0) {
        const std::size_t at = std::size_t{y / 2} * (canvas.width / 2) + x / 2;
        canvas.u[at] = ink.u;
        canvas.v[at] = ink.v;
      }
    }
  }
}

}  // namespace

Ink ink_of_rgb(std::uint8_t r, std::uint8_t g, std::uint8_t b) noexcept {
  // BT.601, limited range, in 1/256.
  return {byte_of(16 + (66 * r + 129 * g + 25 * b + 128) / 256),
          byte_of(128 + (-38 * r - 74 * g + 112 * b + 128) / 256),
          byte_of(128 + (112 * r - 94 * g - 18 * b + 128) / 256)};
}

Canvas canvas_of(const leat_frame& frame) {
  Canvas canvas{.width = frame.width & ~1U, .height = frame.height & ~1U, .y = {}, .u = {}, .v = {}};
  const std::size_t luma = std::size_t{canvas.width} * canvas.height, half = canvas.width / 2;
  canvas.y.resize(luma);
  canvas.u.assign(luma / 4, 128);
  canvas.v.assign(luma / 4, 128);
  if (frame.format == LEAT_FORMAT_rgb24 || frame.format == LEAT_FORMAT_bgr24) {
    const bool bgr = frame.format == LEAT_FORMAT_bgr24;
    planar_from_rgb(frame, bgr ? 2 : 0, bgr ? 0 : 2, canvas);
    return canvas;
  }
  for (std::uint32_t y = 0; y < canvas.height; ++y)
    std::memcpy(&canvas.y[std::size_t{y} * canvas.width], frame.planes[0] + std::uint64_t{y} * frame.strides[0],
                canvas.width);
  for (std::uint32_t y = 0; y < canvas.height / 2; ++y) {
    if (frame.format == LEAT_FORMAT_i420) {
      std::memcpy(&canvas.u[y * half], frame.planes[1] + std::uint64_t{y} * frame.strides[1], half);
      std::memcpy(&canvas.v[y * half], frame.planes[2] + std::uint64_t{y} * frame.strides[2], half);
    } else if (frame.format == LEAT_FORMAT_nv12) {
      const std::uint8_t* row = frame.planes[1] + std::uint64_t{y} * frame.strides[1];
      for (std::size_t x = 0; x < half; ++x) {
        canvas.u[y * half + x] = row[2 * x];
        canvas.v[y * half + x] = row[2 * x + 1];
      }
    }
  }
  return canvas;
}

void draw_box(Canvas& canvas, float x0, float y0, float x1, float y1, int thickness, Ink ink) {
  const auto at = [](float value) {
    return value == value ? static_cast<int>(std::clamp(value, -1e6F, 1e6F)) : 0;
  };  // no number: 0
  const int left = at(x0), top = at(y0), right = at(x1), bottom = at(y1);
  fill(canvas, left, top, right, top + thickness, ink);
  fill(canvas, left, bottom - thickness, right, bottom, ink);
  fill(canvas, left, top, left + thickness, bottom, ink);
  fill(canvas, right - thickness, top, right, bottom, ink);
}

void draw_line(Canvas& canvas, float x0, float y0, float x1, float y1, int thickness, Ink ink) {
  const float length = std::max(std::abs(x1 - x0), std::abs(y1 - y0));
  if (!(length < 1e5F)) return;  // no number, or far outside
  const int steps = std::max(1, static_cast<int>(length));
  for (int i = 0; i <= steps; ++i) {
    const float part = static_cast<float>(i) / static_cast<float>(steps);
    const int x = static_cast<int>(x0 + part * (x1 - x0)), y = static_cast<int>(y0 + part * (y1 - y0));
    fill(canvas, x - thickness / 2, y - thickness / 2, x + (thickness + 1) / 2, y + (thickness + 1) / 2, ink);
  }
}

void draw_mask(Canvas& canvas, const leat_mask& mask, const std::uint8_t* bits, Ink ink) {
  if (!(mask.x1 > mask.x0 && mask.y1 > mask.y0 && mask.x1 < 1e5F && mask.y1 < 1e5F) || mask.width == 0) return;
  const std::size_t row_bytes = (mask.width + 7) / 8;
  const auto first = [](float v) { return v > 0 ? static_cast<int>(v) : 0; };
  const int right = std::min(static_cast<int>(canvas.width), static_cast<int>(mask.x1));
  const int bottom = std::min(static_cast<int>(canvas.height), static_cast<int>(mask.y1));
  for (int y = first(mask.y0); y < bottom; ++y) {
    const auto row = static_cast<std::uint32_t>((static_cast<float>(y) - mask.y0) / (mask.y1 - mask.y0) *
                                                static_cast<float>(mask.height));
    for (int x = first(mask.x0) + y % 2; x < right; x += 2) {
      const auto column = static_cast<std::uint32_t>((static_cast<float>(x) - mask.x0) / (mask.x1 - mask.x0) *
                                                     static_cast<float>(mask.width));
      if (row < mask.height && column < mask.width && (bits[row * row_bytes + column / 8] >> column % 8 & 1) != 0)
        fill(canvas, x, y, x + 1, y + 1, ink);
    }
  }
}

int text_width(std::string_view text, int scale) noexcept {
  return static_cast<int>(text.size()) * (kGlyphWidth + 1) * scale + 2 * kPadding;
}
int text_height(int scale) noexcept { return kGlyphHeight * scale + 2 * kPadding; }

void draw_text(Canvas& canvas, int x, int y, std::string_view text, int scale, Ink ink) {
  x = std::max(0, std::min(x, static_cast<int>(canvas.width) - text_width(text, scale)));
  y = std::max(0, std::min(y, static_cast<int>(canvas.height) - text_height(scale)));
  fill(canvas, x, y, x + text_width(text, scale), y + text_height(scale), Ink{.y = 16, .u = 128, .v = 128});
  x += kPadding;
  y += kPadding;
  for (const char letter : text) {
    const char* rows = rows_of(letter);
    for (int dot = 0; rows != nullptr && dot < kGlyphWidth * kGlyphHeight; ++dot) {
      if (rows[dot] != '#') continue;
      const int left = x + dot % kGlyphWidth * scale, top = y + dot / kGlyphWidth * scale;
      fill(canvas, left, top, left + scale, top + scale, ink);
    }
    x += (kGlyphWidth + 1) * scale;
  }
}

}  // namespace leat::tools
