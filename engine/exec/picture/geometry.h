// Plane geometry of crops and text regions: hulls, smallest rectangles, and the maps that a crop is read through.
// Coordinates are x to the right, y downwards. Plain data and functions without state; any thread; no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "leat/result_types.h"

namespace leat::exec {

struct Point {
  float x = 0, y = 0;
};

// Corners from the top left on, clockwise on the screen.
using Quad = std::array<Point, 4>;

// The convex hull of points that are sorted by y, then x (Andrew, "Another efficient algorithm for convex hulls in two
// dimensions", 1979), into `hull`, which has room for one point more than there are. Returns its corners' number.
std::size_t convex_hull(std::span<const Point> sorted, std::span<Point> hull) noexcept;

// The rectangle of least area round a convex polygon: one of its sides lies along a side of the polygon (Freeman and
// Shapira, "Determining the minimum-area encasing rectangle for an arbitrary closed curve", 1975). score and class are
// left 0. Of the two leftmost corners the upper one is the top left; width leads from it to the top right, so that
// angle is within a quarter turn of upright. A single point gives a rectangle without sides.
leat_oriented_box smallest_rectangle(std::span<const Point> hull) noexcept;

Quad corners_of(const leat_oriented_box& box) noexcept;

// (x, y) -> (m0 x + m1 y + m2, m3 x + m4 y + m5) / (m6 x + m7 y + m8).
struct Projection {
  std::array<double, 9> m = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  [[nodiscard]] Point of(float x, float y) const noexcept {
    const double w = m[6] * x + m[7] * y + m[8];
    return {static_cast<float>((m[0] * x + m[1] * y + m[2]) / w), static_cast<float>((m[3] * x + m[4] * y + m[5]) / w)};
  }
};

// Takes the rectangle (0, 0) .. (width, height) to the quad, corner to corner (Heckbert, "Fundamentals of Texture
// Mapping and Image Warping", 1989, section 2.2.3). False: three corners lie on a line, or one is not finite.
bool project_to_quad(const Quad& quad, float width, float height, Projection* out) noexcept;

// The similarity (turn, scale, shift) that takes `from` to `to` with the least sum of squares (Umeyama, "Least-squares
// estimation of transformation parameters between two point patterns", 1991; in the plane, without reflections).
// False: `from` are all one point, or a value is not finite.
bool similarity(std::span<const Point> from, std::span<const Point> to, Projection* out) noexcept;

}  // namespace leat::exec
