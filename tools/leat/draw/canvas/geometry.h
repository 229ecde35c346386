// Places on a drawing, in pixels of it: y grows downwards. Pure.
#pragma once

#include <algorithm>

#include "tools/leat/draw/canvas/picture.h"

namespace leat::tools::draw {

struct Point {
  double x = 0, y = 0;
};

struct Rect {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  [[nodiscard]] double width() const noexcept { return x1 - x0; }
  [[nodiscard]] double height() const noexcept { return y1 - y0; }
  [[nodiscard]] double area() const noexcept { return std::max(0.0, width()) * std::max(0.0, height()); }
  friend bool operator==(const Rect&, const Rect&) = default;
};
[[nodiscard]] inline double shared_area(const Rect& a, const Rect& b) noexcept {
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return w > 0 && h > 0 ? w * h : 0;
}
[[nodiscard]] inline bool inside(const Rect& a, const Rect& of) noexcept {
  return a.x0 >= of.x0 && a.y0 >= of.y0 && a.x1 <= of.x1 && a.y1 <= of.y1;
}

// From pixels of the frame to pixels of the drawing. What is no number, or far outside, comes to an end of 1e6 pixels.
struct View {
  double across = 1, down = 1;  // pixels of the drawing for one of the frame
  double left = 0, top = 0;     // where the frame begins
  [[nodiscard]] Point at(double x, double y) const noexcept { return {put(x, across, left), put(y, down, top)}; }
  [[nodiscard]] Rect rect(double x0, double y0, double x1, double y1) const noexcept {
    const Point a = at(x0, y0), b = at(x1, y1);
    return {std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x), std::max(a.y, b.y)};
  }

 private:
  static double put(double v, double scale, double from) noexcept {
    return v == v ? std::clamp(from + v * scale, -1e6, 1e6) : 0;
  }
};

// How thick and how large, so that it looks alike on a thumbnail and on a picture of 4K.
struct Style {
  double font = 14, line = 2;  // pixels
  [[nodiscard]] static Style of(double width, double height) noexcept {
    const double side = std::min(width, height);
    return {std::clamp(side / 50, 12.0, 64.0), std::clamp(side / 360, 2.0, 8.0)};
  }
};

}  // namespace leat::tools::draw
