// A tracker without libraries (tracking.hpp): small blocks of each box are looked for near where they should be in the
// next frame, by the least sum of absolute differences; their displacements move and scale the box. It costs about 20
// microseconds a box and step.
#pragma once

#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "leat/box_motion.hpp"
#include "leat/certainty.hpp"
#include "leat/tracking.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace leat {

// Made by `certainty_study --rule` of all ten kinds of generated videos, two of each.
inline constexpr CertaintyRule kBlockRule{{0.0056114f, 0.020635f, 0.11324f, 1.5242f, 0.39787f, 0.11088f, 0.043534f,
                                           0.076071f, -0.041563f, 0.078965f, 0.075011f, 0.10547f, 0.0098727f,
                                           0.046913f}};

class BlockTracker {
 public:
  explicit BlockTracker(const CertaintyRule& rule = kBlockRule) : rule_(rule) {}

  void start(const GreyFrame& frame, std::span<const TrackedBox> boxes) {
    boxes_.assign(boxes.begin(), boxes.end());
    moved_.assign(boxes.size(), {});
    keep(frame);
    certainty_.start(frame, boxes.size());
  }

  void step(const GreyFrame& frame) {
    if (frame.width == width_ && frame.height == height_)
      for (std::size_t i = 0; i < boxes_.size(); ++i) follow(frame, i);
    keep(frame);
    certainty_.stepped(boxes_);
  }

  [[nodiscard]] std::span<const TrackedBox> boxes() const { return boxes_; }
  // What the boxes have lost by now, as far as this can tell (certainty.hpp), 0..1; and what it goes by.
  [[nodiscard]] double expected() { return rule_.expected(terms()); }
  [[nodiscard]] CertaintyTerms terms() { return certainty_.terms(boxes_, moved_); }

 private:
  static constexpr int kSide = 8, kReach = 7, kGrid = 4;
  static constexpr std::uint32_t kFlat = 24 * kSide;  // sum of differences to neighbours below which nothing is seen
  static constexpr float kFar = 1e5f;                 // no frame is as large
  static_assert(kGrid * kGrid <= kMostMatches);

  void keep(const GreyFrame& frame) {
    width_ = frame.width;
    height_ = frame.height;
    before_.resize(std::size_t{width_} * height_);
    for (std::uint32_t y = 0; y < height_; ++y)
      std::copy_n(frame.pixels + y * frame.stride, width_, before_.data() + std::size_t{y} * width_);
  }

  static std::uint32_t difference(const std::uint8_t* a, std::size_t a_stride, const std::uint8_t* b,
                                  std::size_t b_stride) {
#if defined(__SSE2__)
    __m128i sum = _mm_setzero_si128();
    for (int y = 0; y < kSide; y += 2) {
      const auto rows = [y](const std::uint8_t* p, std::size_t stride) {
        const std::size_t at = static_cast<std::size_t>(y) * stride;
        return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + at)),
                                  _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + at + stride)));
      };
      sum = _mm_add_epi64(sum, _mm_sad_epu8(rows(a, a_stride), rows(b, b_stride)));
    }
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(sum) + _mm_cvtsi128_si32(_mm_srli_si128(sum, 8)));
#else
    std::uint32_t sum = 0;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x)
        sum += static_cast<std::uint32_t>(
            std::abs(int{a[static_cast<std::size_t>(y) * a_stride + static_cast<std::size_t>(x)]} -
                     int{b[static_cast<std::size_t>(y) * b_stride + static_cast<std::size_t>(x)]}));
    return sum;
#endif
  }

  // Least of a parabola through the differences left of, at and right of the best place.
  static float between(std::uint32_t left, std::uint32_t best, std::uint32_t right) {
    const float bend = static_cast<float>(left) + static_cast<float>(right) - 2 * static_cast<float>(best);
    if (bend <= 0) return 0;
    return std::clamp((static_cast<float>(left) - static_cast<float>(right)) / (2 * bend), -0.5f, 0.5f);
  }

  // Where the block at (x, y) of the frame before is now, looked for around (x, y) + guess. False: out of the frame, or
  // at the edge of what was looked at.
  bool find(const GreyFrame& frame, int x, int y, int guess_x, int guess_y, PointMatch& out) const {
    const int w = static_cast<int>(width_), h = static_cast<int>(height_);
    if (x < 1 || y < 1 || x + kSide >= w || y + kSide >= h) return false;
    const std::uint8_t* block = before_.data() + static_cast<std::size_t>(y) * width_ + static_cast<std::size_t>(x);
    if (difference(block, width_, block + 1, width_) + difference(block, width_, block + width_, width_) < kFlat)
      return false;
    const int x0 = x + guess_x - kReach, y0 = y + guess_y - kReach;
    constexpr int n = 2 * kReach + 1;
    if (x0 < 0 || y0 < 0 || x0 + n + kSide > w || y0 + n + kSide > h) return false;
    std::array<std::uint32_t, n * n> cost;
    int best = 0;
    for (int v = 0; v < n; ++v) {
      for (int u = 0; u < n; ++u) {
        const std::uint8_t* there =
            frame.pixels + static_cast<std::size_t>(y0 + v) * frame.stride + static_cast<std::size_t>(x0 + u);
        const int at = v * n + u;
        cost[static_cast<std::size_t>(at)] = difference(block, width_, there, frame.stride);
        if (cost[static_cast<std::size_t>(at)] < cost[static_cast<std::size_t>(best)]) best = at;
      }
    }
    const int u = best % n, v = best / n;
    if (u == 0 || v == 0 || u == n - 1 || v == n - 1) return false;
    const auto c = [&](int at) { return cost[static_cast<std::size_t>(at)]; };
    out.dx = static_cast<float>(x0 + u - x) + between(c(best - 1), c(best), c(best + 1));
    out.dy = static_cast<float>(y0 + v - y) + between(c(best - n), c(best), c(best + n));
    out.x = static_cast<float>(x) + kSide / 2.0f;
    out.y = static_cast<float>(y) + kSide / 2.0f;
    return true;
  }

  void follow(const GreyFrame& frame, std::size_t number) {
    TrackedBox& box = boxes_[number];
    BoxMove& move = moved_[number];
    const BoxMove before = move;
    const float w = box.x1 - box.x0, h = box.y1 - box.y0;
    std::array<PointMatch, kGrid * kGrid> found;
    std::size_t n = 0;
    for (int v = 0; v < kGrid; ++v) {
      for (int u = 0; u < kGrid; ++u) {
        // Centres spread over the inner 60 % of the box: an outline's corners show what lies behind it.
        const float cx = box.x0 + w * (0.2f + 0.6f * (static_cast<float>(u) + 0.5f) / kGrid);
        const float cy = box.y0 + h * (0.2f + 0.6f * (static_cast<float>(v) + 0.5f) / kGrid);
        if (!(std::abs(cx) < kFar && std::abs(cy) < kFar)) continue;
        if (find(frame, static_cast<int>(cx) - kSide / 2, static_cast<int>(cy) - kSide / 2,
                 static_cast<int>(std::lround(move.x)), static_cast<int>(std::lround(move.y)), found[n]))
          ++n;
      }
    }
    const BoxVotes votes = move_box(box, move, std::span(found.data(), n));
    certainty_.saw(number, box, before, move, kGrid * kGrid, votes);
  }

  std::vector<TrackedBox> boxes_;
  std::vector<BoxMove> moved_;
  std::vector<std::uint8_t> before_;
  std::uint32_t width_ = 0, height_ = 0;
  Certainty certainty_;
  CertaintyRule rule_;
};
static_assert(CertainTracker<BlockTracker>);

}  // namespace leat
