#include "engine/exec/picture/warp.h"

#include <algorithm>
#include <cstddef>

namespace leat::exec {
namespace {

// Where along one direction a point lies: the first of its two pixels, how far to the second, and its weight. Values
// that are not numbers become the edge.
struct Tap {
  std::size_t first = 0, second = 0;
  float weight = 0;
  Tap(float at, std::uint32_t size) noexcept {
    const float last = static_cast<float>(size - 1), v = at > 0 ? std::min(at, last) : 0.0f;
    first = static_cast<std::size_t>(v);
    second = std::min<std::size_t>(first + 1, size - 1);
    weight = v - static_cast<float>(first);
  }
};

float between(const std::uint8_t* plane, std::uint32_t stride, const Tap& x, const Tap& y, std::size_t step,
              std::size_t offset) noexcept {
  const std::uint8_t *const top = plane + y.first * stride + offset, *const bottom = plane + y.second * stride + offset;
  const float a = top[x.first * step], b = top[x.second * step], c = bottom[x.first * step],
              d = bottom[x.second * step];
  const float above = a + x.weight * (b - a), below = c + x.weight * (d - c);
  return above + y.weight * (below - above);
}

}  // namespace

void warp(const WarpJob& job) noexcept {
  const FrameView& f = *job.frame;
  const bool packed = f.format == LEAT_FORMAT_rgb24 || f.format == LEAT_FORMAT_bgr24;
  const bool semi = f.format == LEAT_FORMAT_nv12, planar = f.format == LEAT_FORMAT_i420;
  for (std::uint32_t j = 0; j < job.height; ++j) {
    const float y = job.y0 + (static_cast<float>(j) + 0.5f) * job.scale_y;
    for (std::uint32_t i = 0; i < job.width; ++i) {
      const Point p = job.to_frame.of(job.x0 + (static_cast<float>(i) + 0.5f) * job.scale_x, y);
      const Tap across(p.x - 0.5f, f.width), down(p.y - 0.5f, f.height);
      float s[3] = {};
      if (packed) {
        for (std::size_t c = 0; c < 3; ++c) s[c] = between(f.planes[0], f.strides[0], across, down, 3, c);
      } else {
        s[0] = between(f.planes[0], f.strides[0], across, down, 1, 0);
      }
      if (semi || planar) {
        const Tap half_across(p.x / 2 - 0.5f, f.width / 2), half_down(p.y / 2 - 0.5f, f.height / 2);
        const std::size_t step = semi ? 2 : 1, v = semi ? 1 : 2;
        s[1] = between(f.planes[1], f.strides[1], half_across, half_down, step, 0);
        s[2] = between(f.planes[v], f.strides[v], half_across, half_down, step, semi ? 1 : 0);
      }
      for (std::uint32_t c = 0; c < job.channels; ++c) {
        const float* k = job.colour->factors[c];
        job.out[c][std::size_t{j} * job.stride + i] =
            std::clamp(k[0] * s[0] + k[1] * s[1] + k[2] * s[2] + k[3], job.colour->low[c], job.colour->high[c]);
      }
    }
  }
}

}  // namespace leat::exec
