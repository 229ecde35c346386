// Values in cells over an area of a drawing, read at any of its pixels. Private to tools/leat/draw.
#pragma once

#include <cmath>
#include <cstdint>

#include "tools/leat/draw/canvas/geometry.h"

namespace leat::tools::draw {

// The pixels of a drawing that lie in an area.
struct PixelRange {
  std::uint32_t x0, y0, x1, y1;
  PixelRange(const Rect& area, Size of) noexcept
      : x0(clamped(area.x0, of.width)),
        y0(clamped(area.y0, of.height)),
        x1(clamped(area.x1, of.width)),
        y1(clamped(area.y1, of.height)) {}

 private:
  static std::uint32_t clamped(double v, std::uint32_t max) noexcept {
    return static_cast<std::uint32_t>(std::clamp(std::round(v), 0.0, static_cast<double>(max)));
  }
};

// value(column, row) gives a cell's. Precondition: columns and rows are not 0.
template <class Value>
struct Cells {
  Rect area;
  std::size_t columns, rows;
  Value value;

  // Of the cell that the pixel's middle lies in.
  [[nodiscard]] auto nearest(std::uint32_t x, std::uint32_t y) const {
    return value(cell(across(x), columns), cell(down(y), rows));
  }
  // Between the middles of four cells.
  [[nodiscard]] double smooth(std::uint32_t x, std::uint32_t y) const {
    const double u = across(x) - 0.5, v = down(y) - 0.5, left = std::floor(u), top = std::floor(v);
    const auto at = [&](double c, double r) { return static_cast<double>(value(cell(c, columns), cell(r, rows))); };
    const double above = at(left, top) + (u - left) * (at(left + 1, top) - at(left, top)),
                 below = at(left, top + 1) + (u - left) * (at(left + 1, top + 1) - at(left, top + 1));
    return above + (v - top) * (below - above);
  }

 private:
  [[nodiscard]] double across(std::uint32_t x) const {
    return (x + 0.5 - area.x0) / std::max(1e-9, area.width()) * static_cast<double>(columns);
  }
  [[nodiscard]] double down(std::uint32_t y) const {
    return (y + 0.5 - area.y0) / std::max(1e-9, area.height()) * static_cast<double>(rows);
  }
  [[nodiscard]] static std::size_t cell(double v, std::size_t count) {
    return static_cast<std::size_t>(std::clamp(std::floor(v), 0.0, static_cast<double>(count - 1)));
  }
};
template <class Value>
Cells(Rect, std::size_t, std::size_t, Value) -> Cells<Value>;

}  // namespace leat::tools::draw
