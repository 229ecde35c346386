// Draws lines, areas and text on a picture, by Cairo and Pango: text of every script that an installed font has, from
// left to right or from right to left as it is written. Everything is clipped to the picture. The same picture comes
// from the same fonts, whatever the desktop's settings.
//
// Thread rule: one thread a pen; several may draw on pictures of their own at once. Errors: none; text that is not
// UTF-8 is drawn with its broken bytes as U+FFFD, and what no font has as Pango draws it, a box with the number.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/leat/draw/canvas/geometry.h"

struct _cairo;
struct _cairo_surface;
struct _PangoLayout;

namespace leat::tools::draw {

inline constexpr double kAnyWidth = 1e5;

class Pen {
 public:
  // `on` outlives the pen, and is not touched while it lives.
  explicit Pen(Picture& on);
  ~Pen();
  Pen(const Pen&) = delete;
  Pen& operator=(const Pen&) = delete;

  // Outlines have a dark rim, so that they are seen on light ground and dark alike. The rectangle's is within it.
  void outline(const Rect& r, double thickness, Colour colour);
  void outline(std::span<const Point> corners, double thickness, Colour colour, bool closed = true);
  void line(Point a, Point b, double thickness, Colour colour);
  void disc(Point middle, double radius, Colour colour);
  void fill(const Rect& r, double corner, Colour colour, double opacity = 1);

  // Pixels that one line of text takes, no wider than `max_width`: longer text ends in three dots.
  [[nodiscard]] Size measure(std::string_view text, double font, double max_width = kAnyWidth);
  // Its top left corner at `at`.
  void text(Point at, std::string_view text, double font, Colour colour, double max_width = kAnyWidth);
  [[nodiscard]] bool has_letters_for(std::string_view text);  // no letter of it is missing from every font

 private:
  void lay_out(std::string_view text, double font, double max_width);
  void stroke(double thickness, Colour colour);

  _cairo_surface* surface_;
  _cairo* cairo_;
  _PangoLayout* layout_;
};

}  // namespace leat::tools::draw
