// Upright boxes by their corners, and how much two of them share. Anything with x0, y0, x1 and y1 is a box here. Pure;
// any thread.
#pragma once

#include <algorithm>

namespace leat::exec {

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

template <class B>
[[nodiscard]] auto area(const B& b) noexcept {
  return (b.x1 - b.x0) * (b.y1 - b.y0);
}

// The area that both cover.
template <class A, class B>
[[nodiscard]] auto intersection(const A& a, const B& b) noexcept {
  const auto w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return w > 0 && h > 0 ? w * h : 0;
}

// Intersection over union.
template <class A, class B>
[[nodiscard]] auto iou(const A& a, const B& b) noexcept {
  const auto both = intersection(a, b);
  return both > 0 ? both / (area(a) + area(b) - both) : both;
}

}  // namespace leat::exec
