// How a box moves with what was found again of it: points of it, each with its displacement, move and scale the box
// together, without those that disagree. What the trackers (tracking.hpp) share. Pixels. Thread rule: none, no state.
// Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "leat/tracking.hpp"

namespace leat {

struct PointMatch {
  float x, y, dx, dy;  // where it was, and by how much it moved
};
inline constexpr std::size_t kMostMatches = 16;  // of a box

struct BoxMove {
  float x = 0, y = 0;  // of the last step
};

struct BoxVotes {                   // what move_box() went by
  std::size_t found = 0, kept = 0;  // matches; those that agree, 0 where there were too few to go by
  float spread = 0;                 // of those around the box's move: mean square, pixels
  float growth = 0;                 // of the box
};

inline void shift_box(TrackedBox& box, float dx, float dy, float by) {
  const float cx = (box.x0 + box.x1) / 2 + dx, cy = (box.y0 + box.y1) / 2 + dy;
  const float w = (box.x1 - box.x0) * by / 2, h = (box.y1 - box.y0) * by / 2;
  box.x0 = cx - w, box.x1 = cx + w, box.y0 = cy - h, box.y1 = cy + h;
}

inline float middle_of(std::array<float, kMostMatches>& v, std::size_t n) {
  const auto at = [&](std::size_t i) { return v.begin() + static_cast<std::ptrdiff_t>(i); };
  std::nth_element(v.begin(), at(n / 2), at(n));
  return v[n / 2];
}

// Agrees with most of the matches.
struct Agreement {
  float x, y;
  [[nodiscard]] bool operator()(const PointMatch& m) const { return std::abs(m.dx - x) < 2 && std::abs(m.dy - y) < 2; }
};
// Precondition: 1 to kMostMatches.
inline Agreement agreement(std::span<const PointMatch> found) {
  std::array<float, kMostMatches> xs{}, ys{};
  for (std::size_t i = 0; i < found.size(); ++i) xs[i] = found[i].dx, ys[i] = found[i].dy;
  return {middle_of(xs, found.size()), middle_of(ys, found.size())};
}

// Says what it went by. With fewer than three matches there is nothing to hold on to: the box goes on as it did in the
// step before.
inline BoxVotes move_box(TrackedBox& box, BoxMove& move, std::span<const PointMatch> found) {
  if (found.size() < 3) {
    shift_box(box, move.x, move.y, 1);
    return {.found = found.size()};
  }
  const Agreement agrees = agreement(found);
  // Those that agree, as a shift and a growth around their middle.
  float x = 0, y = 0, dx = 0, dy = 0, kept = 0;
  for (const PointMatch& m : found)
    if (agrees(m)) x += m.x, y += m.y, dx += m.dx, dy += m.dy, kept += 1;
  if (kept < 3) {
    move = {agrees.x, agrees.y};
    shift_box(box, move.x, move.y, 1);
    return {.found = found.size()};
  }
  x /= kept, y /= kept, dx /= kept, dy /= kept;
  float along = 0, spread = 1, apart = 0;
  for (const PointMatch& m : found) {
    if (!agrees(m)) continue;
    const float ax = m.x - x, ay = m.y - y;
    along += ax * (m.dx - dx) + ay * (m.dy - dy);
    spread += ax * ax + ay * ay;
    apart += (m.dx - dx) * (m.dx - dx) + (m.dy - dy) * (m.dy - dy);
  }
  const float growth = std::clamp(along / spread, -0.05f, 0.05f);
  // The box's middle need not be the points': growth moves it.
  const float cx = (box.x0 + box.x1) / 2, cy = (box.y0 + box.y1) / 2;
  shift_box(box, dx + growth * (cx - x), dy + growth * (cy - y), 1 + growth);
  move = {dx, dy};
  return {.found = found.size(),
          .kept = static_cast<std::size_t>(kept),
          .spread = std::max(0.0f, apart - growth * (2 * along - growth * spread)) / kept,
          .growth = growth};
}

}  // namespace leat
