#include "tools/scene/text/rendered_text.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace leat::scene {
namespace {

std::string path_of(std::string_view font) {
  return "/usr/share/fonts/truetype/dejavu/DejaVu" + std::string(font) + ".ttf";
}

std::vector<FT_ULong> code_points(std::string_view text) {
  std::vector<FT_ULong> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : 3;
    FT_ULong code = length == 1 ? byte : byte & (length == 2 ? 0x1fu : 0x0fu);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      code = code << 6 | (static_cast<std::uint8_t>(text[i + k]) & 0x3fu);
    out.push_back(code);
    i += length;
  }
  return out;
}

struct FaceCloser {
  void operator()(FT_Face face) const { FT_Done_Face(face); }
};
using Face = std::unique_ptr<FT_FaceRec_, FaceCloser>;

Face open_face(FT_Library library, const TextPainter::Style& style) {
  FT_Face face = nullptr;
  const std::string path = path_of(style.font);
  if (FT_New_Face(library, path.c_str(), 0, &face) != 0) throw std::runtime_error("no font " + path);
  FT_Set_Pixel_Sizes(face, 0, style.pixels);
  return Face(face);
}

// Calls put(x, y, coverage) for each pixel of ink, the pen beginning at (0, 0); returns how far the pen went along the
// line, in pixels.
template <class Put>
double ink(FT_Face face, std::string_view text, double radians, Put put) {
  FT_Matrix turn;
  turn.xx = turn.yy = static_cast<FT_Fixed>(std::lround(std::cos(radians) * 65536));
  turn.xy = static_cast<FT_Fixed>(std::lround(std::sin(radians) * 65536));  // FreeType's y grows upwards
  turn.yx = -turn.xy;
  FT_Vector pen{0, 0};
  double along = 0;
  for (const FT_ULong code : code_points(text)) {
    FT_Set_Transform(face, &turn, &pen);
    if (FT_Load_Char(face, code, FT_LOAD_RENDER) != 0) continue;
    const FT_GlyphSlot g = face->glyph;
    for (unsigned r = 0; r < g->bitmap.rows; ++r)
      for (unsigned c = 0; c < g->bitmap.width; ++c)
        if (const std::uint8_t v = g->bitmap.buffer[r * static_cast<unsigned>(g->bitmap.pitch) + c]; v != 0)
          put(g->bitmap_left + static_cast<int>(c), -g->bitmap_top + static_cast<int>(r), v);
    pen.x += g->advance.x, pen.y += g->advance.y;
    along = std::hypot(static_cast<double>(pen.x), static_cast<double>(pen.y)) / 64;
  }
  return along;
}

void blend(TextPicture& on, std::int64_t x, std::int64_t y, std::uint8_t coverage, Colour colour) {
  if (x < 0 || y < 0 || x >= on.width || y >= on.height) return;
  std::uint8_t* const at = on.rgb.data() + (static_cast<std::size_t>(y) * on.width + static_cast<std::size_t>(x)) * 3;
  for (std::size_t c = 0; c < 3; ++c)
    at[c] = static_cast<std::uint8_t>((at[c] * (255 - coverage) + colour[c] * coverage + 127) / 255);
}

}  // namespace

TextPicture::TextPicture(std::uint32_t w, std::uint32_t h, Colour paper) : width(w), height(h) {
  rgb.resize(std::size_t{w} * h * 3);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = paper[i % 3];
}

exec::FrameView TextPicture::view() const {
  exec::FrameView f;
  f.planes[0] = rgb.data(), f.strides[0] = width * 3;
  f.format = LEAT_FORMAT_rgb24, f.width = width, f.height = height, f.bytes = rgb.size();
  return f;
}

TextPainter::TextPainter() {
  if (FT_Init_FreeType(&library_) != 0) throw std::runtime_error("FreeType does not start");
}
TextPainter::~TextPainter() { FT_Done_FreeType(library_); }
bool TextPainter::has_font(std::string_view font) { return ::access(path_of(font).c_str(), R_OK) == 0; }

void TextPainter::draw(TextPicture& on, std::string_view text, double x, double y, const Style& style) const {
  const Face face = open_face(library_, style);
  const double radians = style.degrees * std::acos(-1.0) / 180;
  const double length = ink(face.get(), text, radians, [](int, int, std::uint8_t) {});
  // The middle of a line lies a third of the em above its foot.
  const double up = style.pixels / 3.0, cosine = std::cos(radians), sine = std::sin(radians);
  const auto x0 = static_cast<std::int64_t>(std::lround(x - length / 2 * cosine - up * sine));
  const auto y0 = static_cast<std::int64_t>(std::lround(y - length / 2 * sine + up * cosine));
  ink(face.get(), text, radians, [&](int dx, int dy, std::uint8_t v) { blend(on, x0 + dx, y0 + dy, v, style.ink); });
}

TextPicture TextPainter::line(std::string_view text, const Style& style, std::uint32_t margin, Colour paper) const {
  const Face face = open_face(library_, style);
  int left = INT32_MAX, top = INT32_MAX, right = INT32_MIN, bottom = INT32_MIN;
  ink(face.get(), text, 0, [&](int x, int y, std::uint8_t) {
    left = std::min(left, x), right = std::max(right, x), top = std::min(top, y), bottom = std::max(bottom, y);
  });
  const int around = static_cast<int>(margin);
  TextPicture out(static_cast<std::uint32_t>(right - left + 1 + 2 * around),
                  static_cast<std::uint32_t>(bottom - top + 1 + 2 * around), paper);
  ink(face.get(), text, 0,
      [&](int x, int y, std::uint8_t v) { blend(out, x - left + around, y - top + around, v, style.ink); });
  return out;
}

}  // namespace leat::scene
