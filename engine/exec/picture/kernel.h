// Resizing kernels: which source pixels a target pixel is made of along one direction, and with which weights
// (enum leat_resize but linear, which resample.h does). The same source for the host and for the device
// (cuda/device/picture_body.h). Pure.
//
// Of `count` target pixels, which share a span of the source, pixel i covers the i-th part. Pillow's kernels are
// centred on that part, and stretched where it is longer than a pixel. They take pixels beside the span too, as
// Image.resize(box=) does. Area weighs each pixel by the part of it that is covered; where one direction enlarges,
// OpenCV takes two pixels along both.
#pragma once

#include <cstdint>

#include "engine/exec/device.h"

#if defined(__CUDACC__)
#define LEAT_BOTH __host__ __device__ __forceinline__
#else
#define LEAT_BOTH inline
#endif

namespace leat::exec {

struct Axis {
  float begin, end;      // of the span, in source pixels
  std::uint32_t count;   // target pixels
  std::uint32_t size;    // of the source, in pixels
  std::uint32_t resize;  // enum leat_resize
  bool area_of_two;      // area where one of the two directions enlarges
};

LEAT_BOTH bool enlarges(float begin, float end, std::uint32_t count) { return end - begin < static_cast<float>(count); }

// The source pixels [first, end) of one target pixel.
struct Reach {
  std::uint32_t first, end;
  std::uint32_t resize;
  bool two;
  float from;    // Pillow's: from the target pixel's middle to the first one's; area: from its edge; two: the weight
  float length;  // Pillow's: 1 / stretch; area: what is covered
};

// In target pixels, where the source is not enlarged.
LEAT_BOTH float support_of(std::uint32_t resize) {
  return resize == LEAT_RESIZE_lanczos ? 3.0f : resize == LEAT_RESIZE_cubic ? 2.0f : 1.0f;
}
// Kernels that go below 0: a value can leave the range of its source.
LEAT_BOTH bool overshoots(std::uint32_t resize) { return resize == LEAT_RESIZE_cubic || resize == LEAT_RESIZE_lanczos; }

// Precondition: the target pixel covers a part of the source.
LEAT_BOTH Reach reach_of(const Axis& a, std::uint32_t i) {
  const double parts = static_cast<double>(a.count) / (static_cast<double>(a.end) - static_cast<double>(a.begin));
  const double part = 1.0 / parts, at = static_cast<double>(i) * part, begin = static_cast<double>(a.begin) + at;
  const double size = static_cast<double>(a.size);
  Reach r{0, 0, a.resize, false, 0.0f, 0.0f};
  // The first pixel's place, and that of the one after the last; area's as OpenCV rounds it, from its first pixel on.
  const auto whole = static_cast<double>(static_cast<std::uint32_t>(a.begin > 0.0f ? a.begin : 0.0f));
  const double inside = at + (static_cast<double>(a.begin) - whole);
  double low = whole + static_cast<double>(static_cast<std::uint32_t>(inside > 0.0 ? inside : 0.0));
  double high = begin + part + 1.0;
  if (a.resize == LEAT_RESIZE_nearest) {
    low = begin + part * 0.5;
    high = low + 1.0;
  } else if (a.resize != LEAT_RESIZE_area) {
    const double stretch = part > 1.0 ? part : 1.0, reach = static_cast<double>(support_of(a.resize)) * stretch;
    low = begin + part * 0.5 - reach + 0.5;
    high = begin + part * 0.5 + reach + 0.5;
    r.length = static_cast<float>(1.0 / stretch);
  }
  low = low > 0.0 ? (low < size - 1.0 ? low : size - 1.0) : 0.0;
  high = high < size ? high : size;
  r.first = static_cast<std::uint32_t>(low);
  r.end = high >= low + 1.0 ? static_cast<std::uint32_t>(high) : r.first + 1u;
  if (a.resize != LEAT_RESIZE_area) {
    r.from = static_cast<float>(static_cast<double>(r.first) + 0.5 - begin - part * 0.5);
  } else if (a.area_of_two) {
    const double next = static_cast<double>(r.first + 1u) - static_cast<double>(a.begin);
    const auto over = static_cast<float>(static_cast<double>(i + 1u) - next * parts);
    r.two = true;
    r.from = over > 0.0f && r.first + 1u < a.size ? over - static_cast<float>(static_cast<std::uint32_t>(over)) : 0.0f;
    r.end = r.first + (r.first + 1u < a.size ? 2u : 1u);
  } else {
    r.from = static_cast<float>(static_cast<double>(r.first) - begin);
    r.length = static_cast<float>(part);
  }
  return r;
}

// sin(u)^2 for |u| <= pi.
LEAT_BOTH float sine_squared(float u) {
  constexpr float kPi = 3.14159265f;
  u = u < 0.0f ? -u : u;
  u = u > kPi / 2 ? kPi - u : u;
  const float s = u * u;
  const float sine =
      u * (1.0f +
           s * (-1.6666667e-1f + s * (8.3333333e-3f + s * (-1.9841270e-4f + s * (2.7557319e-6f - s * 2.5052108e-8f)))));
  return sine * sine;
}

// Of the k-th of its pixels, not yet normalised.
LEAT_BOTH float weight_of(const Reach& r, std::uint32_t k) {
  const float at = r.from + static_cast<float>(k);
  if (r.resize == LEAT_RESIZE_nearest) return 1.0f;
  if (r.two) return k == 0 ? 1.0f - r.from : r.from;
  if (r.resize == LEAT_RESIZE_area) {
    const float low = at > 0.0f ? at : 0.0f, high = at + 1.0f < r.length ? at + 1.0f : r.length;
    return high > low ? high - low : 0.0f;
  }
  const float signed_t = at * r.length, t = signed_t < 0.0f ? -signed_t : signed_t;
  if (r.resize == LEAT_RESIZE_cubic) {
    constexpr float kA = -0.5f;
    if (t < 1.0f) return ((kA + 2.0f) * t - (kA + 3.0f)) * t * t + 1.0f;
    return t < 2.0f ? (((t - 5.0f) * t + 8.0f) * t - 4.0f) * kA : 0.0f;
  }
  if (r.resize == LEAT_RESIZE_lanczos) {  // sinc(t) sinc(t / 3), by sin(3 u) = 3 sin(u) - 4 sin(u)^3
    const float u = t * (3.14159265f / 3.0f);
    if (!(t < 3.0f)) return 0.0f;
    if (u < 1e-3f) return 1.0f;
    const float square = sine_squared(u);
    return square * (1.0f - square * (4.0f / 3.0f)) / (u * u);
  }
  return t < 1.0f ? 1.0f - t : 0.0f;
}

LEAT_BOTH float sum_of(const Reach& r) {
  float sum = 0.0f;
  for (std::uint32_t k = 0; k < r.end - r.first; ++k) sum += weight_of(r, k);
  return sum;
}

// ---- planes of half the size: what they would weigh if they were enlarged to the whole one linearly, each of their
// pixels lying between four ----

LEAT_BOTH std::uint32_t half_first(const Reach& r) { return r.first == 0u ? 0u : (r.first - 1u) / 2u; }
LEAT_BOTH std::uint32_t half_end(const Reach& r, std::uint32_t half_size) {
  const std::uint32_t last = r.end / 2u;
  return (last < half_size - 1u ? last : half_size - 1u) + 1u;
}
LEAT_BOTH float weight_at(const Reach& r, std::uint32_t x) {
  return x >= r.first && x < r.end ? weight_of(r, x - r.first) : 0.0f;
}
// Of pixel `at` of the smaller plane. Their sum is that of the whole plane's.
LEAT_BOTH float half_weight(const Reach& r, std::uint32_t at, std::uint32_t half_size) {
  const std::uint32_t x = at * 2u;
  float w = 0.75f * (weight_at(r, x) + weight_at(r, x + 1u));
  w += 0.25f * (at == 0u ? weight_at(r, 0u) : weight_at(r, x - 1u));
  w += 0.25f * (at + 1u == half_size ? weight_at(r, x + 1u) : weight_at(r, x + 2u));
  return w;
}

// Between which values the luma of gray lies that is not clipped.
LEAT_BOTH float luma_at(const float* factors, float value) {
  return (value - factors[3] - 128.0f * (factors[1] + factors[2])) / factors[0];
}

}  // namespace leat::exec
