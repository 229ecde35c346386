#include "engine/exec/picture/passes.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat::exec {
namespace {

constexpr float kUnit = 1.0f / static_cast<float>(kOne << kPartBits);

// ---- portable ----

void portable_combine_from(const CombineJob& job, std::size_t from) noexcept {
  for (std::size_t i = from; i < job.end; ++i) {
    std::int32_t sum = job.count == 1 ? job.row[i] * kOne : 0;
    for (std::uint32_t r = 0; job.count > 1 && r < job.count; ++r) sum += job.weights[r] * job.row[r * job.stride + i];
    job.out[i] = static_cast<std::int16_t>((sum + (1 << (kOneBits - kPartBits - 1))) >> (kOneBits - kPartBits));
  }
}
void portable_combine(const CombineJob& job) noexcept { portable_combine_from(job, job.begin); }

template <std::uint32_t kComponents>
void portable_across(const AcrossJob& job) noexcept {
  const std::uint32_t taps = job.columns->taps;
  for (std::uint32_t i = 0; i < job.width; ++i) {
    const std::int16_t* const weights = job.columns->weights.data() + std::size_t{i} * taps;
    const std::int16_t* const at = job.row + static_cast<std::size_t>(job.columns->first[i]) * kComponents;
    std::int32_t sums[kComponents] = {};
    for (std::uint32_t k = 0; k < taps; ++k)
      for (std::uint32_t c = 0; c < kComponents; ++c) sums[c] += weights[k] * at[k * kComponents + c];
    for (std::uint32_t c = 0; c < kComponents; ++c)
      job.out[c][i] = std::clamp(static_cast<float>(sums[c]) * kUnit, job.low, job.high);
  }
}

void portable_down(const float* from, float weight, bool first, std::uint32_t width, float* to) noexcept {
  for (std::uint32_t i = 0; i < width; ++i) to[i] = (first ? 0.0f : to[i]) + weight * from[i];
}

void portable_colour_from(const float* const s[3], std::uint32_t components, const Colour& colour,
                          std::uint32_t channels, std::uint32_t from, std::uint32_t width,
                          float* const out[3]) noexcept {
  for (std::uint32_t i = from; i < width; ++i) {
    float v[3] = {};
    for (std::uint32_t c = 0; c < components; ++c) v[c] = s[c][i];
    for (std::uint32_t c = 0; c < channels; ++c) {
      const float* const f = colour.factors[c];
      out[c][i] = std::clamp(f[0] * v[0] + f[1] * v[1] + f[2] * v[2] + f[3], colour.low[c], colour.high[c]);
    }
  }
}

void portable_colour(const float* const s[3], std::uint32_t components, const Colour& colour, std::uint32_t channels,
                     std::uint32_t width, float* const out[3]) noexcept {
  portable_colour_from(s, components, colour, channels, 0, width, out);
}

constexpr Passes kPortable = {
    portable_combine, {portable_across<1>, portable_across<2>, portable_across<3>}, portable_down, portable_colour};

// ---- AVX2 ----
#if defined(__x86_64__)
#define LEAT_AVX2 __attribute__((target("avx2,fma"), always_inline)) inline
#define LEAT_AVX2_PASS __attribute__((target("avx2,fma"))) void

LEAT_AVX2 __m256i load(const void* at) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
LEAT_AVX2 __m128i half_load(const void* at) noexcept { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
LEAT_AVX2 __m256i both(__m128i low, __m128i high) noexcept {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
LEAT_AVX2 __m256i pair_of(const std::int16_t* weights) noexcept {
  std::int32_t pair;
  __builtin_memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}
LEAT_AVX2 __m256i parts_of(__m256i low, __m256i high) noexcept {
  constexpr int kShift = kOneBits - kPartBits;
  const __m256i round = _mm256_set1_epi32(1 << (kShift - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, round), kShift),
                            _mm256_srai_epi32(_mm256_add_epi32(high, round), kShift));
}

LEAT_AVX2_PASS avx2_combine(const CombineJob& job) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  std::size_t i = job.begin;
  if (job.count == 1) {
    for (; i + 16 <= job.end; i += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.out + i),
                          _mm256_slli_epi16(_mm256_cvtepu8_epi16(half_load(job.row + i)), kPartBits));
    return portable_combine_from(job, i);
  }
  for (; i + 32 <= job.end; i += 32) {
    __m256i a = zero, b = zero, c = zero, d = zero;
    for (std::uint32_t r = 0; r < job.count; r += 2) {
      const std::uint8_t* const at = job.row + r * job.stride + i;
      const __m256i one = load(at), two = r + 1 < job.count ? load(at + job.stride) : zero;
      const __m256i low = _mm256_unpacklo_epi8(one, two), high = _mm256_unpackhi_epi8(one, two);
      const __m256i weights = pair_of(job.weights + r);
      a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weights));
      b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weights));
      c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weights));
      d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weights));
    }
    const __m256i ab = parts_of(a, b), cd = parts_of(c, d);  // values 0..7 and 16..23, 8..15 and 24..31
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.out + i), _mm256_permute2x128_si256(ab, cd, 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.out + i + 16), _mm256_permute2x128_si256(ab, cd, 0x31));
  }
  portable_combine_from(job, i);
}

// Where the taps of a target pixel lie, and their weights. kTaps: how many, where that is known here; 0: any number.
template <std::uint32_t kComponents, std::uint32_t kTaps>
struct At {
  std::uint32_t taps;
  const std::int16_t *row, *weights;
  LEAT_AVX2 At(const AcrossJob& job, std::uint32_t i) noexcept
      : taps(kTaps != 0 ? kTaps : job.columns->taps),
        row(job.row + static_cast<std::size_t>(job.columns->first[i]) * kComponents),
        weights(job.columns->weights.data() + std::size_t{i} * taps) {}
};

LEAT_AVX2 void put(const AcrossJob& job, __m256i sums, std::uint32_t component, std::uint32_t i) noexcept {
  const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(kUnit));
  _mm256_storeu_ps(job.out[component] + i,
                   _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(job.low)), _mm256_set1_ps(job.high)));
}
// What the halves of two registers add up to, one after the other.
LEAT_AVX2 __m256i halves_of(__m256i a, __m256i b) noexcept {
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

// Of two target pixels, i and i + 4, in the halves of a register: four parts of a sum.
template <std::uint32_t kTaps>
LEAT_AVX2 __m256i one_component(const AcrossJob& job, std::uint32_t i) noexcept {
  const At<1, kTaps> a(job, i), b(job, i + 4);
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 2
  for (std::uint32_t k = 0; k < a.taps; k += 8)
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(both(half_load(a.row + k), half_load(b.row + k)),
                                                  both(half_load(a.weights + k), half_load(b.weights + k))));
  return sum;
}

// Four taps in each half of a register: two parts of the first component's sum, and two of the second's.
template <std::uint32_t kTaps>
LEAT_AVX2 __m256i two_components(const AcrossJob& job, std::uint32_t i) noexcept {
  const __m256i apart =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  const At<2, kTaps> at(job, i);
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 2
  for (std::uint32_t k = 0; k < at.taps; k += 8) {
    const __m256i weights = _mm256_permute4x64_epi64(_mm256_castsi128_si256(half_load(at.weights + k)), 0x50);
    sum = _mm256_add_epi32(sum,
                           _mm256_madd_epi16(_mm256_shuffle_epi8(load(at.row + std::size_t{2} * k), apart), weights));
  }
  return sum;
}

// Two taps in each half of a register: each component's sum.
template <std::uint32_t kTaps>
LEAT_AVX2 __m256i three_components(const AcrossJob& job, std::uint32_t i) noexcept {
  const __m256i pairs =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
  const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const At<3, kTaps> at(job, i);
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 2
  for (std::uint32_t k = 0; k < at.taps; k += 4) {
    const std::int16_t* const from = at.row + std::size_t{3} * k;
    const __m256i weights = _mm256_permutevar8x32_epi32(
        _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at.weights + k))), spread);
    const __m256i pixels = _mm256_shuffle_epi8(both(half_load(from), half_load(from + 6)), pairs);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, weights));
  }
  return sum;
}

template <std::uint32_t kComponents, std::uint32_t kTaps>
LEAT_AVX2_PASS across_by(const AcrossJob& job) noexcept {
  for (std::uint32_t i = 0;; i = std::min(i + 8, job.width - 8)) {
    if constexpr (kComponents == 1) {
      const __m256i a = one_component<kTaps>(job, i), b = one_component<kTaps>(job, i + 1),
                    c = one_component<kTaps>(job, i + 2), d = one_component<kTaps>(job, i + 3);
      put(job, _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d)), 0, i);
    } else {
      __m256i s[4];  // components of target pixel i + p, and of i + p + 4
#pragma GCC unroll 4
      for (std::uint32_t p = 0; p < 4; ++p) {
        if constexpr (kComponents == 2)
          s[p] = halves_of(two_components<kTaps>(job, i + p), two_components<kTaps>(job, i + p + 4));
        else
          s[p] = halves_of(three_components<kTaps>(job, i + p), three_components<kTaps>(job, i + p + 4));
      }
      if constexpr (kComponents == 2) {
        const __m256i ab = _mm256_hadd_epi32(s[0], s[1]), cd = _mm256_hadd_epi32(s[2], s[3]);
        const __m256i ab_by = _mm256_shuffle_epi32(ab, 0xd8), cd_by = _mm256_shuffle_epi32(cd, 0xd8);
        put(job, _mm256_unpacklo_epi64(ab_by, cd_by), 0, i);
        put(job, _mm256_unpackhi_epi64(ab_by, cd_by), 1, i);
      } else {
        const __m256i ab = _mm256_unpacklo_epi32(s[0], s[1]), cd = _mm256_unpacklo_epi32(s[2], s[3]);
        put(job, _mm256_unpacklo_epi64(ab, cd), 0, i);
        put(job, _mm256_unpackhi_epi64(ab, cd), 1, i);
        put(job, _mm256_unpacklo_epi64(_mm256_unpackhi_epi32(s[0], s[1]), _mm256_unpackhi_epi32(s[2], s[3])), 2, i);
      }
    }
    if (i + 8 >= job.width) return;
  }
}

template <std::uint32_t kComponents>
void avx2_across(const AcrossJob& job) noexcept {
  if (job.width < 8) return portable_across<kComponents>(job);
  switch (job.columns->taps) {
    case 8:
      return across_by<kComponents, 8>(job);
    case 16:
      return across_by<kComponents, 16>(job);
    default:
      return across_by<kComponents, 0>(job);
  }
}

LEAT_AVX2_PASS avx2_down(const float* from, float weight, bool first, std::uint32_t width, float* to) noexcept {
  const __m256 w = _mm256_set1_ps(weight);
  std::uint32_t i = 0;
  for (; i + 8 <= width; i += 8) {
    const __m256 had = first ? _mm256_setzero_ps() : _mm256_loadu_ps(to + i);
    _mm256_storeu_ps(to + i, _mm256_fmadd_ps(w, _mm256_loadu_ps(from + i), had));
  }
  portable_down(from + i, weight, first, width - i, to + i);
}

LEAT_AVX2_PASS avx2_colour(const float* const s[3], std::uint32_t components, const Colour& colour,
                           std::uint32_t channels, std::uint32_t width, float* const out[3]) noexcept {
  std::uint32_t i = 0;
  for (; i + 8 <= width; i += 8) {
    __m256 v[3] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (std::uint32_t c = 0; c < components; ++c) v[c] = _mm256_loadu_ps(s[c] + i);
    for (std::uint32_t c = 0; c < channels; ++c) {
      const float* const f = colour.factors[c];
      __m256 o = _mm256_fmadd_ps(_mm256_set1_ps(f[0]), v[0], _mm256_set1_ps(f[3]));
      o = _mm256_fmadd_ps(_mm256_set1_ps(f[1]), v[1], o);
      o = _mm256_fmadd_ps(_mm256_set1_ps(f[2]), v[2], o);
      o = _mm256_min_ps(_mm256_max_ps(o, _mm256_set1_ps(colour.low[c])), _mm256_set1_ps(colour.high[c]));
      _mm256_storeu_ps(out[c] + i, o);
    }
  }
  portable_colour_from(s, components, colour, channels, i, width, out);
}

constexpr Passes kAvx2 = {avx2_combine, {avx2_across<1>, avx2_across<2>, avx2_across<3>}, avx2_down, avx2_colour};
#endif

}  // namespace

const Passes& portable_passes() noexcept { return kPortable; }

const Passes& passes() noexcept {
#if defined(__x86_64__)
  static const bool kHas = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kHas) return kAvx2;
#endif
  return kPortable;
}

}  // namespace leat::exec
