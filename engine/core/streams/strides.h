// How much a tracked answer loses with its tracking stride (the frames between the frame that was answered and the one
// that is shown): drop(s) = jitter + slope * x(s). x(s) = s is the thesis's straight line (section 3.4.3). Measured
// curves begin more slowly, because a drift of less than the detector's own flicker hides in it, and bend down later:
//
//   x(s) = s^2 / (s + hidden) / (1 + bend s)
//
// Plain data, made once; sums over ranges of strides take two look-ups. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace leat::core::streams {

inline constexpr std::uint32_t kLongestStride = 255;  // a longer one is taken as this

class StrideCurve {
 public:
  explicit StrideCurve(double bend = 0, double hidden = 0) noexcept : bend_(bend), hidden_(hidden) {
    for (std::uint32_t s = 0; s <= kLongestStride; ++s) before_[s + 1] = before_[s] + at(s);
  }
  [[nodiscard]] bool straight() const noexcept { return bend_ == 0 && hidden_ == 0; }
  [[nodiscard]] double at(std::uint32_t stride) const noexcept {
    if (stride == 0) return 0;
    const double s = std::min(stride, kLongestStride);
    return s * s / ((s + hidden_) * (1 + bend_ * s));
  }
  // Over strides first..last, both included; 0 where there is none.
  [[nodiscard]] double sum(std::uint32_t first, std::uint32_t last) const noexcept {
    if (last < first) return 0;
    return upto(last + 1) - upto(first);
  }
  [[nodiscard]] double mean(std::uint32_t first, std::uint32_t count) const noexcept {
    return count == 0 ? 0 : sum(first, first + count - 1) / count;
  }

 private:
  [[nodiscard]] double upto(std::uint32_t end) const noexcept {  // of 0..end-1
    if (end <= kLongestStride + 1) return before_[end];
    return before_[kLongestStride + 1] + (end - kLongestStride - 1) * at(kLongestStride);
  }
  double bend_, hidden_;
  std::array<double, kLongestStride + 2> before_{};
};

}  // namespace leat::core::streams
