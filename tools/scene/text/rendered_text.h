// Pictures of text for tests, drawn with FreeType and the DejaVu fonts. Thread rule: one thread a TextPainter. Errors:
// the constructor throws std::runtime_error where FreeType does not start; draw() where a font is missing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/frame_view.h"

struct FT_LibraryRec_;

namespace leat::scene {

using Colour = std::array<std::uint8_t, 3>;

struct TextPicture {
  std::uint32_t width, height;
  std::vector<std::uint8_t> rgb;
  TextPicture(std::uint32_t w, std::uint32_t h, Colour paper = {255, 255, 255});
  [[nodiscard]] exec::FrameView view() const;
};

class TextPainter {
 public:
  TextPainter();
  ~TextPainter();
  TextPainter(const TextPainter&) = delete;
  TextPainter& operator=(const TextPainter&) = delete;
  static bool has_font(std::string_view font);  // "Sans", "Serif-Bold": of DejaVu

  struct Style {
    std::string_view font = "Sans";
    std::uint32_t pixels = 32;  // em
    double degrees = 0;         // clockwise
    Colour ink = {0, 0, 0};
  };
  // The middle of the text comes to (x, y). UTF-8 of up to U+FFFF.
  void draw(TextPicture& on, std::string_view text, double x, double y, const Style& style) const;
  // One line with this many pixels of paper round its ink.
  [[nodiscard]] TextPicture line(std::string_view text, const Style& style, std::uint32_t margin, Colour paper) const;

 private:
  FT_LibraryRec_* library_ = nullptr;
};

}  // namespace leat::scene
