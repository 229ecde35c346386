#include "tools/leat/feed/drawing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace leat::tools {
namespace {

Canvas grey(std::uint32_t width, std::uint32_t height) {
  return {.width = width,
          .height = height,
          .y = std::vector<std::uint8_t>(width * height, 50),
          .u = std::vector<std::uint8_t>(width * height / 4, 128),
          .v = std::vector<std::uint8_t>(width * height / 4, 128)};
}

TEST(Drawing, NothingIsWrittenOutside) {
  // The planes are vectors of exactly their size: a write outside shows under the address sanitizer.
  const float wild[] = {-1e9F,
                        -5,
                        0,
                        3,
                        31.5F,
                        32,
                        100,
                        1e9F,
                        std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()};
  Canvas canvas = grey(32, 24);
  for (const float x0 : wild) {
    for (const float y0 : wild) draw_box(canvas, x0, y0, y0, x0, 3, Ink{});
    draw_text(canvas, static_cast<int>(std::isfinite(x0) ? std::min(std::max(x0, -1e6F), 1e6F) : 0), 5,
              "far too long for this canvas", 2, Ink{});
  }
  SUCCEED();
}

TEST(Drawing, ABoxIsHollowAndHasItsColour) {
  Canvas canvas = grey(64, 64);
  draw_box(canvas, 10, 10, 50, 40, 2, Ink{.y = 200, .u = 90, .v = 30});
  EXPECT_EQ(canvas.y[10 * 64 + 30], 200);
  EXPECT_EQ(canvas.y[39 * 64 + 30], 200);
  EXPECT_EQ(canvas.y[25 * 64 + 10], 200);
  EXPECT_EQ(canvas.y[25 * 64 + 49], 200);
  EXPECT_EQ(canvas.y[25 * 64 + 30], 50);
  EXPECT_EQ(canvas.y[9 * 64 + 30], 50);
  EXPECT_EQ(canvas.y[40 * 64 + 30], 50);
  EXPECT_EQ(canvas.u[5 * 32 + 15], 90);
  EXPECT_EQ(canvas.v[5 * 32 + 15], 30);
}

TEST(Drawing, AMaskIsAVeilOverItsSetCells) {
  // 10 cells by 2 over 40 x 8 pixels from (4, 4): a row begins with a byte of its own.
  const std::uint8_t bits[] = {0b0000'0010, 0b0000'0010, 0b1000'0000, 0b0000'0000};  // cells 1 and 9, then cell 7
  leat_mask mask{.x0 = 4, .y0 = 4, .x1 = 44, .y1 = 12, .width = 10, .height = 2, .offset = 0, .bytes = sizeof bits};
  Canvas canvas = grey(64, 64);
  draw_mask(canvas, mask, bits, Ink{.y = 200});
  for (std::uint32_t y = 0; y < 64; ++y) {
    for (std::uint32_t x = 0; x < 64; ++x) {
      const bool top = y >= 4 && y < 8, bottom = y >= 8 && y < 12;
      const bool set = (top && ((x >= 8 && x < 12) || (x >= 40 && x < 44))) || (bottom && x >= 32 && x < 36);
      EXPECT_EQ(canvas.y[y * 64 + x], set && (x + y) % 2 == 0 ? 200 : 50) << x << ", " << y;
    }
  }
  // Of what reaches beyond the canvas, its part within; of what is no box, nothing.
  const std::uint8_t all[] = {255, 255, 255, 255};
  mask.x0 = mask.y0 = -64, mask.x1 = mask.y1 = 128;
  draw_mask(canvas, mask, all, Ink{.y = 210});
  for (std::uint32_t y = 0; y < 64; ++y)
    for (std::uint32_t x = y % 2; x < 64; x += 2) EXPECT_EQ(canvas.y[y * 64 + x], 210) << x << ", " << y;
  const std::vector<std::uint8_t> before = canvas.y;
  for (const float wild : {std::numeric_limits<float>::quiet_NaN(), 1e30F}) {
    mask.x0 = wild;
    draw_mask(canvas, mask, all, Ink{.y = 220});
  }
  mask.x0 = -1e30F, mask.x1 = std::numeric_limits<float>::infinity();
  draw_mask(canvas, mask, all, Ink{.y = 220});
  EXPECT_EQ(canvas.y, before);
}

TEST(Drawing, LettersDiffer) {
  std::vector<std::vector<std::uint8_t>> pictures;
  for (const char letter : std::string("abcdefghijklmnopqrstuvwxyz0123456789.:%-_/(),#")) {
    Canvas canvas = grey(16, 16);
    draw_text(canvas, 0, 0, std::string(1, letter), 1, Ink{.y = 255});
    for (const auto& other : pictures) EXPECT_NE(canvas.y, other) << letter;
    pictures.push_back(canvas.y);
  }
}

TEST(Drawing, EveryFormatBecomesTheSameCanvas) {
  std::vector<std::uint8_t> rgb(16 * 8 * 3), i420(16 * 8 * 3 / 2), nv12(16 * 8 * 3 / 2);
  const Ink ink = ink_of_rgb(200, 30, 90);
  for (std::size_t i = 0; i < 16 * 8; ++i) {
    rgb[3 * i] = 200;
    rgb[3 * i + 1] = 30;
    rgb[3 * i + 2] = 90;
    i420[i] = nv12[i] = ink.y;
  }
  for (std::size_t i = 0; i < 32; ++i) {
    i420[128 + i] = nv12[128 + 2 * i] = ink.u;
    i420[160 + i] = nv12[129 + 2 * i] = ink.v;
  }
  const Canvas a = canvas_of({.format = LEAT_FORMAT_rgb24,
                              .width = 16,
                              .height = 8,
                              .plane_count = 1,
                              .planes = {rgb.data()},
                              .strides = {48}});
  const Canvas b = canvas_of({.format = LEAT_FORMAT_i420,
                              .width = 16,
                              .height = 8,
                              .plane_count = 3,
                              .planes = {i420.data(), i420.data() + 128, i420.data() + 160},
                              .strides = {16, 8, 8}});
  const Canvas c = canvas_of({.format = LEAT_FORMAT_nv12,
                              .width = 16,
                              .height = 8,
                              .plane_count = 2,
                              .planes = {nv12.data(), nv12.data() + 128},
                              .strides = {16, 16}});
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.u, b.u);
  EXPECT_EQ(a.v, b.v);
  EXPECT_EQ(b.y, c.y);
  EXPECT_EQ(b.u, c.u);
  EXPECT_EQ(b.v, c.v);
}

}  // namespace
}  // namespace leat::tools
