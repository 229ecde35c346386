// One pixel of one picture, the same source for the device and for the host, where tests run it: its taps along each
// direction, colour, normalisation, and the store. Linear, the arithmetic is that of engine/exec/picture/resample.cpp's
// portable rows, operation by operation (no contraction on the device: -fmad=false), so both give the same values.
// Other ways to resize weigh as engine/exec/picture/kernel.h says, in floats where the host has whole numbers: to about
// a twentieth of one of 255 the same. Pure.
#pragma once

#include <cstdint>

#include "engine/exec/device.h"
#include "engine/exec/picture/kernel.h"

namespace leat::cuda {

// leat_format and enum leat_dtype, by value: those headers are not for the device's compiler. pictures.cpp checks them.
inline constexpr std::uint32_t kNv12 = 1, kI420 = 2, kRgb24 = 3, kBgr24 = 4, kGray8 = 5;
inline constexpr std::uint32_t kFloat32 = 0, kFloat16 = 1, kBytes = 2;

struct Tap {
  std::uint32_t first, step;  // pixels
  float weight;               // of the second
};

LEAT_BOTH Tap tap_of(float origin, float scale, std::uint32_t i, std::uint32_t size) {
  if (size < 2) return {0, 0, 0.0f};
  const float last = static_cast<float>(size - 1);
  float at = origin + (static_cast<float>(i) + 0.5f) * scale - 0.5f;
  at = at > 0.0f ? at : 0.0f;
  at = at < last ? at : last;
  std::uint32_t first = static_cast<std::uint32_t>(at);
  first = first < size - 2 ? first : size - 2;
  return {first, 1, at - static_cast<float>(first)};
}

LEAT_BOTH float between(const std::uint8_t* plane, std::uint32_t stride, const Tap& x, const Tap& y,
                        std::uint32_t pixel_bytes) {
  const std::uint8_t* const p = plane + static_cast<std::uint64_t>(stride) * y.first + x.first * pixel_bytes;
  const std::uint32_t right = x.step * pixel_bytes;
  const std::uint64_t below = static_cast<std::uint64_t>(stride) * y.step;
  const float a = p[0], b = p[right], c = p[below], d = p[below + right];
  const float top = a + x.weight * (b - a), bottom = c + x.weight * (d - c);
  return top + y.weight * (bottom - top);
}

// Round to nearest, ties to even; what float32 cannot say in float16 becomes infinite or a subnormal.
LEAT_BOTH std::uint16_t half_of(float value) {
  union {
    float f;
    std::uint32_t u;
  } in{value};
  const std::uint32_t sign = in.u >> 16 & 0x8000u, magnitude = in.u & 0x7fffffffu;
  if (magnitude >= 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0u));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);
  const bool normal = magnitude >= 0x38800000u;
  const std::uint32_t shift = normal ? 13 : 126 - (magnitude >> 23);
  const std::uint32_t mantissa = normal ? magnitude - 0x38000000u : (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t half = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), middle = 1u << (shift - 1u);
  return static_cast<std::uint16_t>(sign | (half + (rest > middle || (rest == middle && (half & 1u)) ? 1u : 0u)));
}

LEAT_BOTH void store(const leat_picture_target& t, void* out, std::uint32_t x, std::uint32_t y, std::uint32_t c,
                     float value) {
  const std::uint64_t pixel = static_cast<std::uint64_t>(y) * t.width + x;
  const std::uint64_t at =
      t.layout == LEAT_NHWC ? pixel * t.channels + c : static_cast<std::uint64_t>(t.width) * t.height * c + pixel;
  if (t.dtype == kFloat32) {
    static_cast<float*>(out)[at] = value;
  } else if (t.dtype == kFloat16) {
    static_cast<std::uint16_t*>(out)[at] = half_of(value);
  } else {
    const float scaled = value * 255.0f + 0.5f;
    static_cast<std::uint8_t*>(out)[at] =
        static_cast<std::uint8_t>(scaled > 0.0f ? (scaled < 255.0f ? scaled : 255.0f) : 0.0f);
  }
}

// The source's components at target pixel (i, j) of the window: two pixels along each direction.
LEAT_BOTH void linear_pixel(const leat_picture_job& job, std::uint32_t i, std::uint32_t j, float* s) {
  const Tap across = tap_of(job.x0, job.scale_x, i, job.width), down = tap_of(job.y0, job.scale_y, j, job.height);
  if (job.format == kRgb24 || job.format == kBgr24) {
    for (std::uint32_t c = 0; c < 3; ++c) s[c] = between(job.planes[0] + c, job.strides[0], across, down, 3);
    return;
  }
  s[0] = between(job.planes[0], job.strides[0], across, down, 1);
  if (job.format != kNv12 && job.format != kI420) return;
  const Tap u = tap_of(job.x0 / 2, job.scale_x / 2, i, job.width / 2),
            v = tap_of(job.y0 / 2, job.scale_y / 2, j, job.height / 2);
  const bool semi = job.format == kNv12;
  s[1] = between(job.planes[1], job.strides[1], u, v, semi ? 2 : 1);
  s[2] = semi ? between(job.planes[1] + 1, job.strides[1], u, v, 2) : between(job.planes[2], job.strides[2], u, v, 1);
}

// Weighted pixels of `count` components that alternate, kept within low..high along each row. half: a plane of half the
// frame's sides.
LEAT_BOTH void weighted(const std::uint8_t* plane, std::uint32_t stride, std::uint32_t step, std::uint32_t count,
                        const exec::Reach& across, const exec::Reach& down, std::uint32_t width, std::uint32_t height,
                        bool half, float low, float high, float* s) {
  const std::uint32_t x0 = half ? exec::half_first(across) : across.first,
                      x1 = half ? exec::half_end(across, width) : across.end,
                      y0 = half ? exec::half_first(down) : down.first,
                      y1 = half ? exec::half_end(down, height) : down.end;
  const float scale_x = 1.0f / exec::sum_of(across), scale_y = 1.0f / exec::sum_of(down);
  for (std::uint32_t c = 0; c < count; ++c) s[c] = 0.0f;
  for (std::uint32_t y = y0; y < y1; ++y) {
    const float weight_y = half ? exec::half_weight(down, y, height) : exec::weight_of(down, y - y0);
    float row[3] = {0.0f, 0.0f, 0.0f};
    for (std::uint32_t x = x0; x < x1; ++x) {
      const float weight_x = half ? exec::half_weight(across, x, width) : exec::weight_of(across, x - x0);
      const std::uint8_t* const p =
          plane + static_cast<std::uint64_t>(stride) * y + static_cast<std::uint64_t>(x) * step;
      for (std::uint32_t c = 0; c < count; ++c) row[c] += weight_x * static_cast<float>(p[c]);
    }
    for (std::uint32_t c = 0; c < count; ++c) {
      const float v = row[c] * scale_x;
      s[c] += weight_y * scale_y * (v < low ? low : v > high ? high : v);
    }
  }
}

// The same for other ways to resize.
LEAT_BOTH void weighted_pixel(const leat_picture_job& job, std::uint32_t resize, std::uint32_t i, std::uint32_t j,
                              float* s) {
  const bool two =
      exec::enlarges(job.x0, job.x1, job.window_width) || exec::enlarges(job.y0, job.y1, job.window_height);
  const exec::Reach across = exec::reach_of({job.x0, job.x1, job.window_width, job.width, resize, two}, i),
                    down = exec::reach_of({job.y0, job.y1, job.window_height, job.height, resize, two}, j);
  const bool packed = job.format == kRgb24 || job.format == kBgr24, semi = job.format == kNv12,
             planar = job.format == kI420;
  const bool luma = (semi || planar) && exec::overshoots(resize);
  weighted(job.planes[0], job.strides[0], packed ? 3 : 1, packed ? 3 : 1, across, down, job.width, job.height, false,
           luma ? exec::luma_at(job.factors[0], job.low[0]) : 0.0f,
           luma ? exec::luma_at(job.factors[0], job.high[0]) : 255.0f, s);
  const std::uint32_t width = job.width / 2, height = job.height / 2;
  if (semi) weighted(job.planes[1], job.strides[1], 2, 2, across, down, width, height, true, 0.0f, 255.0f, s + 1);
  for (std::uint32_t p = 1; planar && p < 3; ++p)
    weighted(job.planes[p], job.strides[p], 1, 1, across, down, width, height, true, 0.0f, 255.0f, s + p);
}

// Writes target pixel (x, y) of every channel. The job's planes and `out` are addresses that this code can read.
// kLinear: the target is resized linearly. That is a separate kernel, since the other one needs twice the registers.
template <bool kLinear>
LEAT_BOTH void picture_pixel(const leat_picture_job& job, const leat_picture_target& t, std::uint32_t x,
                             std::uint32_t y) {
  const std::uint32_t i = x - job.left, j = y - job.top;  // wraps beyond the window's start
  if (i >= job.window_width || j >= job.window_height) {
    for (std::uint32_t c = 0; c < t.channels; ++c) store(t, job.out, x, y, c, job.pad[c]);
    return;
  }
  float s[3] = {0.0f, 0.0f, 0.0f};
  if constexpr (kLinear)
    linear_pixel(job, i, j, s);
  else
    weighted_pixel(job, t.resize, i, j, s);
  for (std::uint32_t c = 0; c < t.channels; ++c) {
    const float* const f = job.factors[c];
    float value = f[0] * s[0] + f[1] * s[1] + f[2] * s[2] + f[3];
    value = value < job.low[c] ? job.low[c] : value;
    value = value > job.high[c] ? job.high[c] : value;
    store(t, job.out, x, y, c, value);
  }
}

}  // namespace leat::cuda
