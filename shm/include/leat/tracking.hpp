// Following boxes from frame to frame on the client, between two answers of a server.
//
// Coordinates are pixels of the frame, origin top left; x1 and y1 are exclusive. Frames are grey, one byte a pixel,
// and belong to the caller; a tracker copies what it needs beyond the call. Header-only, no dependency.
// Thread rule: one thread for each tracker. Errors: none; a box without texture stays where it is.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat {

struct GreyFrame {
  const std::uint8_t* pixels = nullptr;
  std::uint32_t width = 0, height = 0;
  std::size_t stride = 0;  // bytes from row to row, at least width
};

struct TrackedBox {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  std::int32_t label = -1;  // whatever the answer said; tracking hands it on
};

// What follows boxes: start() with a frame and what an answer found in it, step() with each frame after it.
template <class T>
concept Tracker = requires(T t, const GreyFrame& frame, std::span<const TrackedBox> boxes) {
  t.start(frame, boxes);
  t.step(frame);
  { t.boxes() } -> std::convertible_to<std::span<const TrackedBox>>;
};

// One that also says what the boxes have lost by now, as far as it can tell, 0..1 (certainty.hpp).
template <class T>
concept CertainTracker = Tracker<T> && requires(T t) {
  { t.expected() } -> std::convertible_to<double>;
};

inline float overlap(const TrackedBox& a, const TrackedBox& b) {
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  const float both = w * h;
  return both / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both);
}

// How far two sets of boxes are apart: 1 - sum of IoU / (matched + only in a + only in b). 0: the same, also where both
// are empty; 1: nothing in common. Boxes match one to one, those of largest overlap first, from an IoU of 0.3 on.
inline double distance(std::span<const TrackedBox> a, std::span<const TrackedBox> b) {
  if (a.empty() && b.empty()) return 0;
  struct Pair {
    float iou;
    std::uint32_t a, b;
  };
  std::vector<Pair> pairs;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    for (std::uint32_t k = 0; k < b.size(); ++k) {
      const float iou = overlap(a[i], b[k]);
      if (iou >= 0.3f) pairs.push_back({iou, i, k});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
    return x.iou != y.iou ? x.iou > y.iou : x.a != y.a ? x.a < y.a : x.b < y.b;
  });
  std::vector<char> a_taken(a.size()), b_taken(b.size());
  double sum = 0;
  std::size_t matched = 0;
  for (const Pair& p : pairs) {
    if (a_taken[p.a] != 0 || b_taken[p.b] != 0) continue;
    a_taken[p.a] = b_taken[p.b] = 1;
    sum += p.iou;
    ++matched;
  }
  return 1 - sum / static_cast<double>(a.size() + b.size() - matched);
}

}  // namespace leat
