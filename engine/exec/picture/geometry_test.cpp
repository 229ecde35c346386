// Plane geometry against numbers worked out by hand and by exhaustive search.
#include "engine/exec/picture/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace leat::exec {
namespace {

leat_oriented_box smallest_round(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.y != b.y ? a.y < b.y : a.x < b.x; });
  std::vector<Point> hull(2 * points.size() + 1);
  hull.resize(convex_hull(points, hull));
  return smallest_rectangle(hull);
}

TEST(Geometry, HullKeepsCornersAlone) {
  const std::vector<Point> grid = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  std::vector<Point> hull(2 * grid.size() + 1);
  ASSERT_EQ(convex_hull(grid, hull), 4u);
  double area = 0;
  for (std::size_t i = 0; i < 4; ++i) area += hull[i].x * hull[(i + 1) % 4].y - hull[(i + 1) % 4].x * hull[i].y;
  EXPECT_EQ(std::abs(area) / 2, 4);
  EXPECT_EQ(convex_hull(std::span(grid).first(1), hull), 1u);
  EXPECT_EQ(convex_hull(std::span(grid).first(3), hull), 2u);  // on a line
}

TEST(Geometry, SmallestRectangleIsNotLargerThanAnyOther) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> any(-50, 50);
  for (int round = 0; round < 20; ++round) {
    std::vector<Point> points(12);
    for (Point& p : points) p = {3 * any(random), any(random)};
    const leat_oriented_box box = smallest_round(points);
    double min = 1e30;
    for (int i = 0; i < 9000; ++i) {
      const double t = i * std::acos(-1.0) / 18000, c = std::cos(t), s = std::sin(t);
      double u0 = 1e9, u1 = -1e9, v0 = 1e9, v1 = -1e9;
      for (const Point& p : points) {
        const double u = p.x * c + p.y * s, v = p.y * c - p.x * s;
        u0 = std::min(u0, u), u1 = std::max(u1, u), v0 = std::min(v0, v), v1 = std::max(v1, v);
      }
      min = std::min(min, (u1 - u0) * (v1 - v0));
    }
    EXPECT_LE(box.width * box.height, min * 1.0001);
    EXPECT_GE(box.width * box.height, min * 0.999);
    for (const Point& p : points) {  // and all are inside
      const float dx = p.x - box.cx, dy = p.y - box.cy, c = std::cos(box.angle), s = std::sin(box.angle);
      EXPECT_LE(std::abs(dx * c + dy * s), box.width / 2 + 1e-3F);
      EXPECT_LE(std::abs(dy * c - dx * s), box.height / 2 + 1e-3F);
    }
  }
}

TEST(Geometry, CornersBeginAtTheTopLeft) {
  // Long sides fall by 30 degrees: (cos, sin) = (.866, .5) to the right and down.
  const float c = std::sqrt(3.0F) / 2, s = 0.5F;
  const leat_oriented_box box =
      smallest_round({{0, 0}, {80 * c, 80 * s}, {80 * c - 20 * s, 80 * s + 20 * c}, {-20 * s, 20 * c}});
  EXPECT_NEAR(box.width, 80, 1e-3);
  EXPECT_NEAR(box.height, 20, 1e-3);
  EXPECT_NEAR(box.angle, std::acos(-1.0F) / 6, 1e-5);
  const Quad q = corners_of(box);
  EXPECT_NEAR(q[0].x, 0, 1e-3);
  EXPECT_NEAR(q[0].y, 0, 1e-3);
  EXPECT_NEAR(q[1].x, 80 * c, 1e-3);
  EXPECT_NEAR(q[1].y, 80 * s, 1e-3);
  EXPECT_NEAR(q[3].x, -20 * s, 1e-3);
  EXPECT_NEAR(q[3].y, 20 * c, 1e-3);
}

TEST(Geometry, ProjectionMeetsTheCornersAndTheMiddle) {
  const Quad quad = {{{10, 20}, {110, 10}, {130, 90}, {5, 70}}};
  Projection p;
  ASSERT_TRUE(project_to_quad(quad, 64, 32, &p));
  const float at[4][2] = {{0, 0}, {64, 0}, {64, 32}, {0, 32}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(p.of(at[i][0], at[i][1]).x, quad[i].x, 1e-3);
    EXPECT_NEAR(p.of(at[i][0], at[i][1]).y, quad[i].y, 1e-3);
  }
  // A projection keeps lines: the middle goes where the diagonals meet. (10,20)-(130,90) and (110,10)-(5,70):
  // 10 + 120 t = 110 - 105 u, 20 + 70 t = 10 + 60 u  =>  t = 330 / 970, so x = 50.8247, y = 43.8144.
  const double t = (100.0 * 60 - 105 * 10) / (120.0 * 60 + 105 * 70);
  EXPECT_NEAR(p.of(32, 16).x, 10 + 120 * t, 1e-3);
  EXPECT_NEAR(p.of(32, 16).y, 20 + 70 * t, 1e-3);
  EXPECT_FALSE(project_to_quad({{{0, 0}, {1, 1}, {2, 2}, {0, 3}}}, 4, 4, &p));
  EXPECT_FALSE(project_to_quad({{{0, 0}, {NAN, 1}, {2, 2}, {0, 3}}}, 4, 4, &p));
}

TEST(Geometry, SimilarityFindsTurnScaleAndShift) {
  const std::vector<Point> from = {{38, 51}, {73, 51}, {56, 71}, {41, 92}, {70, 92}};
  const double scale = 2.5, angle = 0.4, c = scale * std::cos(angle), s = scale * std::sin(angle);
  std::vector<Point> to;
  for (const Point& p : from)
    to.push_back({static_cast<float>(c * p.x - s * p.y + 12), static_cast<float>(s * p.x + c * p.y - 7)});
  Projection found;
  ASSERT_TRUE(similarity(from, to, &found));
  EXPECT_NEAR(found.m[0], c, 1e-5);
  EXPECT_NEAR(found.m[1], -s, 1e-5);
  EXPECT_NEAR(found.m[2], 12, 1e-3);
  EXPECT_NEAR(found.m[3], s, 1e-5);
  EXPECT_NEAR(found.m[4], c, 1e-5);
  EXPECT_NEAR(found.m[5], -7, 1e-3);
  const std::vector<Point> same(5, Point{3, 3});
  EXPECT_FALSE(similarity(same, to, &found));
}

}  // namespace
}  // namespace leat::exec
