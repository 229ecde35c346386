#include "engine/exec/picture/resample.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat::exec {
namespace {

// ---- portable ----

inline float between(const std::uint8_t* first, const std::uint8_t* second, std::int32_t at, std::int32_t step,
                     float across, float down) noexcept {
  const float a = first[at], b = first[at + step], c = second[at], d = second[at + step];
  const float top = a + across * (b - a), bottom = c + across * (d - c);
  return top + down * (bottom - top);
}

template <Arrangement kArrangement>
inline void portable_pixels(const RowJob& job, std::uint32_t from) noexcept {
  const PixelTaps& full = *job.columns;
  for (std::uint32_t i = from; i < job.width; ++i) {
    float s[3] = {};
    const std::int32_t at = full.offsets[i];
    s[0] = between(job.first[0], job.second[0], at, full.step, full.weights[i], job.weight);
    if constexpr (kArrangement == Arrangement::packed) {
      s[1] = between(job.first[0] + 1, job.second[0] + 1, at, full.step, full.weights[i], job.weight);
      s[2] = between(job.first[0] + 2, job.second[0] + 2, at, full.step, full.weights[i], job.weight);
    } else if constexpr (kArrangement != Arrangement::gray) {
      const PixelTaps& half = *job.chroma_columns;
      constexpr bool kSemi = kArrangement == Arrangement::semi_planar;
      const std::uint8_t* v_first = kSemi ? job.first[1] + 1 : job.first[2];
      const std::uint8_t* v_second = kSemi ? job.second[1] + 1 : job.second[2];
      s[1] = between(job.first[1], job.second[1], half.offsets[i], half.step, half.weights[i], job.chroma_weight);
      s[2] = between(v_first, v_second, half.offsets[i], half.step, half.weights[i], job.chroma_weight);
    }
    for (std::uint32_t c = 0; c < job.channels; ++c) {
      const float* f = job.colour->factors[c];
      job.out[c][i] =
          std::clamp(f[0] * s[0] + f[1] * s[1] + f[2] * s[2] + f[3], job.colour->low[c], job.colour->high[c]);
    }
  }
}

template <Arrangement kArrangement>
void portable_row(const RowJob& job) noexcept {
  portable_pixels<kArrangement>(job, 0);
}

// ---- AVX2: one gather of four bytes fetches both taps of a pixel (and of U and V together where they are interleaved)
// ----
#if defined(__x86_64__)
#define LEAT_AVX2 __attribute__((target("avx2,fma"), always_inline)) inline

LEAT_AVX2 __m256 byte_of(__m256i words, int shift) noexcept {
  return _mm256_cvtepi32_ps(
      _mm256_and_si256(_mm256_srl_epi32(words, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(255)));
}
LEAT_AVX2 __m256 mix(__m256 a, __m256 b, __m256 weight) noexcept {
  return _mm256_fmadd_ps(weight, _mm256_sub_ps(b, a), a);
}
LEAT_AVX2 __m256i gather(const std::uint8_t* row, __m256i offsets) noexcept {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(row), offsets, 1);
}
// The value between four pixels whose taps are bytes `a` and `b` of the gathered words.
LEAT_AVX2 __m256 blend(__m256i top, __m256i bottom, int a, int b, __m256 across, __m256 down) noexcept {
  return mix(mix(byte_of(top, a), byte_of(top, b), across), mix(byte_of(bottom, a), byte_of(bottom, b), across), down);
}
LEAT_AVX2 void store(const RowJob& job, std::uint32_t i, __m256 s0, __m256 s1, __m256 s2) noexcept {
  for (std::uint32_t c = 0; c < job.channels; ++c) {
    const float* f = job.colour->factors[c];
    __m256 v = _mm256_fmadd_ps(_mm256_set1_ps(f[0]), s0, _mm256_set1_ps(f[3]));
    v = _mm256_fmadd_ps(_mm256_set1_ps(f[1]), s1, v);
    v = _mm256_fmadd_ps(_mm256_set1_ps(f[2]), s2, v);
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(job.colour->low[c])), _mm256_set1_ps(job.colour->high[c]));
    _mm256_storeu_ps(job.out[c] + i, v);
  }
}

template <Arrangement kArrangement>
__attribute__((target("avx2,fma"))) void avx2_row(const RowJob& job) noexcept {
  const PixelTaps& full = *job.columns;
  const __m256 down = _mm256_set1_ps(job.weight), chroma_down = _mm256_set1_ps(job.chroma_weight);
  std::uint32_t i = 0;
  for (; i + 8 <= job.width; i += 8) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(full.offsets.data() + i));
    const __m256 across = _mm256_loadu_ps(full.weights.data() + i);
    const __m256i top = gather(job.first[0], at), bottom = gather(job.second[0], at);
    __m256 s0, s1 = _mm256_setzero_ps(), s2 = _mm256_setzero_ps();
    if constexpr (kArrangement == Arrangement::packed) {  // bytes 0 1 2 3 and 2 3 4 5 of six
      const __m256i top_end = gather(job.first[0] + 2, at), bottom_end = gather(job.second[0] + 2, at);
      s0 = blend(top, bottom, 0, 24, across, down);
      s1 = mix(mix(byte_of(top, 8), byte_of(top_end, 16), across),
               mix(byte_of(bottom, 8), byte_of(bottom_end, 16), across), down);
      s2 = blend(top_end, bottom_end, 0, 24, across, down);
    } else {
      s0 = blend(top, bottom, 0, 8, across, down);
    }
    if constexpr (kArrangement == Arrangement::semi_planar || kArrangement == Arrangement::planar) {
      const PixelTaps& half = *job.chroma_columns;
      const __m256i chroma_at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(half.offsets.data() + i));
      const __m256 chroma_across = _mm256_loadu_ps(half.weights.data() + i);
      const __m256i u = gather(job.first[1], chroma_at), u_below = gather(job.second[1], chroma_at);
      if constexpr (kArrangement == Arrangement::semi_planar) {
        s1 = blend(u, u_below, 0, 16, chroma_across, chroma_down);
        s2 = blend(u, u_below, 8, 24, chroma_across, chroma_down);
      } else {
        s1 = blend(u, u_below, 0, 8, chroma_across, chroma_down);
        s2 = blend(gather(job.first[2], chroma_at), gather(job.second[2], chroma_at), 0, 8, chroma_across, chroma_down);
      }
    }
    store(job, i, s0, s1, s2);
  }
  portable_pixels<kArrangement>(job, i);
}

// Whether the gathers' last bytes lie within the slot: a gather reads up to two bytes behind a row's last pixel.
bool room_behind(const RowJob& job, int planes) noexcept {
  for (int p = 0; p < planes; ++p) {
    const PixelTaps& taps = p == 0 ? *job.columns : *job.chroma_columns;
    const std::ptrdiff_t last = taps.offsets[job.width - 1] + 6;
    if (job.end - job.first[p] < last || job.end - job.second[p] < last) return false;
  }
  return true;
}

template <Arrangement kArrangement, int kPlanes>
void avx2_or_portable_row(const RowJob& job) noexcept {
  if (job.width >= 8 && room_behind(job, kPlanes)) {
    avx2_row<kArrangement>(job);
  } else {
    portable_row<kArrangement>(job);
  }
}
#endif

}  // namespace

void PixelTaps::lay(float origin, float scale, std::uint32_t count, std::uint32_t size,
                    std::uint32_t pixel_bytes) noexcept {
  step = size > 1 ? static_cast<std::int32_t>(pixel_bytes) : 0;
  const float last = static_cast<float>(size - 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const float at = std::clamp(origin + (static_cast<float>(i) + 0.5f) * scale - 0.5f, 0.0f, last);
    const std::uint32_t first = size > 1 ? std::min(static_cast<std::uint32_t>(at), size - 2) : 0;
    offsets[i] = static_cast<std::int32_t>(first * pixel_bytes);
    weights[i] = size > 1 ? at - static_cast<float>(first) : 0.0f;
  }
}

RowFunction portable_row_function(Arrangement arrangement) noexcept {
  switch (arrangement) {
    case Arrangement::gray:
      return portable_row<Arrangement::gray>;
    case Arrangement::packed:
      return portable_row<Arrangement::packed>;
    case Arrangement::semi_planar:
      return portable_row<Arrangement::semi_planar>;
    case Arrangement::planar:
      break;
  }
  return portable_row<Arrangement::planar>;
}

RowFunction row_function(Arrangement arrangement) noexcept {
#if defined(__x86_64__)
  static const bool kHas = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kHas) {
    switch (arrangement) {
      case Arrangement::gray:
        return avx2_or_portable_row<Arrangement::gray, 1>;
      case Arrangement::packed:
        return avx2_or_portable_row<Arrangement::packed, 1>;
      case Arrangement::semi_planar:
        return avx2_or_portable_row<Arrangement::semi_planar, 2>;
      case Arrangement::planar:
        return avx2_or_portable_row<Arrangement::planar, 3>;
    }
  }
#endif
  return portable_row_function(arrangement);
}

}  // namespace leat::exec
