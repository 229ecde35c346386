#include "engine/exec/picture/geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace leat::exec {
namespace {

double turn(const Point& a, const Point& b, const Point& c) noexcept {
  return (double{b.x} - a.x) * (double{c.y} - a.y) - (double{b.y} - a.y) * (double{c.x} - a.x);
}

}  // namespace

std::size_t convex_hull(std::span<const Point> sorted, std::span<Point> hull) noexcept {
  std::size_t count = 0;
  const auto add = [&](const Point& p, std::size_t min) {
    while (count >= min + 2 && turn(hull[count - 2], hull[count - 1], p) <= 0) --count;
    hull[count++] = p;
  };
  for (const Point& p : sorted) add(p, 0);
  const std::size_t half = count - (count > 0 ? 1 : 0);
  for (std::size_t i = sorted.size(); i-- > 1;) add(sorted[i - 1], half);
  return count > 1 ? count - 1 : count;  // the first point came twice
}

leat_oriented_box smallest_rectangle(std::span<const Point> hull) noexcept {
  leat_oriented_box best{};
  if (hull.empty()) return best;
  best.cx = hull[0].x, best.cy = hull[0].y;
  double min = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < hull.size(); ++i) {
    const Point &a = hull[i], &b = hull[(i + 1) % hull.size()];
    const double length = std::hypot(double{b.x} - a.x, double{b.y} - a.y);
    if (!(length > 0)) continue;
    const double ux = (double{b.x} - a.x) / length, uy = (double{b.y} - a.y) / length;
    double low_u = 0, high_u = 0, low_v = 0, high_v = 0;  // relative to a, along the side and across it
    for (const Point& p : hull) {
      const double dx = double{p.x} - a.x, dy = double{p.y} - a.y, u = dx * ux + dy * uy, v = dy * ux - dx * uy;
      low_u = std::min(low_u, u), high_u = std::max(high_u, u), low_v = std::min(low_v, v),
      high_v = std::max(high_v, v);
    }
    const double area = (high_u - low_u) * (high_v - low_v);
    if (!(area < min)) continue;
    min = area;
    const double u = (low_u + high_u) / 2, v = (low_v + high_v) / 2;
    best.cx = static_cast<float>(a.x + u * ux - v * uy), best.cy = static_cast<float>(a.y + u * uy + v * ux);
    best.width = static_cast<float>(high_u - low_u), best.height = static_cast<float>(high_v - low_v);
    best.angle = static_cast<float>(std::atan2(uy, ux));
  }
  // The same rectangle with its corners in the order that this file's words say.
  Quad q = corners_of(best);
  std::sort(q.begin(), q.end(), [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  if (q[1].y < q[0].y) std::swap(q[0], q[1]);
  if (q[3].y < q[2].y) std::swap(q[2], q[3]);
  const Point &tl = q[0], &bl = q[1], &tr = q[2];
  best.width = std::hypot(tr.x - tl.x, tr.y - tl.y), best.height = std::hypot(bl.x - tl.x, bl.y - tl.y);
  best.angle = std::atan2(tr.y - tl.y, tr.x - tl.x);
  return best;
}

Quad corners_of(const leat_oriented_box& b) noexcept {
  const float c = std::cos(b.angle), s = std::sin(b.angle);
  const float wx = c * b.width / 2, wy = s * b.width / 2, hx = -s * b.height / 2, hy = c * b.height / 2;
  return {{{b.cx - wx - hx, b.cy - wy - hy},
           {b.cx + wx - hx, b.cy + wy - hy},
           {b.cx + wx + hx, b.cy + wy + hy},
           {b.cx - wx + hx, b.cy - wy + hy}}};
}

bool project_to_quad(const Quad& q, float width, float height, Projection* out) noexcept {
  for (const Point& p : q)
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) return false;
  for (std::size_t i = 0; i < 4; ++i)
    if (!(std::abs(turn(q[i], q[(i + 1) % 4], q[(i + 2) % 4])) > 0)) return false;
  const double dx1 = double{q[1].x} - q[2].x, dx2 = double{q[3].x} - q[2].x,
               sx = double{q[0].x} - q[1].x + q[2].x - q[3].x;
  const double dy1 = double{q[1].y} - q[2].y, dy2 = double{q[3].y} - q[2].y,
               sy = double{q[0].y} - q[1].y + q[2].y - q[3].y;
  const double whole = dx1 * dy2 - dx2 * dy1, g = (sx * dy2 - dx2 * sy) / whole, h = (dx1 * sy - sx * dy1) / whole;
  out->m = {(q[1].x - q[0].x + g * q[1].x) / width,
            (q[3].x - q[0].x + h * q[3].x) / height,
            q[0].x,
            (q[1].y - q[0].y + g * q[1].y) / width,
            (q[3].y - q[0].y + h * q[3].y) / height,
            q[0].y,
            g / width,
            h / height,
            1};
  return true;
}

bool similarity(std::span<const Point> from, std::span<const Point> to, Projection* out) noexcept {
  const std::size_t n = std::min(from.size(), to.size());
  double fx = 0, fy = 0, tx = 0, ty = 0;
  for (std::size_t i = 0; i < n; ++i) fx += from[i].x, fy += from[i].y, tx += to[i].x, ty += to[i].y;
  const double count = static_cast<double>(n);
  fx /= count, fy /= count, tx /= count, ty /= count;
  double along = 0, across = 0, spread = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double ax = from[i].x - fx, ay = from[i].y - fy, bx = to[i].x - tx, by = to[i].y - ty;
    along += ax * bx + ay * by, across += ax * by - ay * bx, spread += ax * ax + ay * ay;
  }
  if (!(spread > 0) || !std::isfinite(along + across)) return false;
  const double a = along / spread, b = across / spread;  // scale * cosine, scale * sine
  out->m = {a, -b, tx - a * fx + b * fy, b, a, ty - b * fx - a * fy, 0, 0, 1};
  return a != 0 || b != 0;
}

}  // namespace leat::exec
