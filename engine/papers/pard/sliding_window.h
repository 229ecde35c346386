// Sliding windows over recent time, in bins, with linearly falling weights (PARD section 4.2: q_i, T_smooth). Integers
// only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/types.h"

namespace leat::papers {

using core::TimeNs;

class SlidingWindow {
 public:
  static constexpr std::int64_t kBins = 50;

  explicit SlidingWindow(TimeNs length_ns = 5'000'000'000) : bin_ns_(std::max<TimeNs>(1, length_ns / kBins)) {}

  // Moves to the bin of `now`. True: a bin was completed, so what is derived from the window is out of date.
  bool roll(TimeNs now) noexcept {
    if (now < newest_end_ns_) return false;
    const std::int64_t bin = now / bin_ns_;
    const std::int64_t steps = std::min(bin - newest_, kBins);
    for (std::int64_t i = 0; i < steps; ++i) {
      at(bin - i) = {};
    }
    newest_ = bin;
    newest_end_ns_ = (bin + 1) * bin_ns_;
    return true;
  }
  void add(TimeNs value, std::int64_t count = 1) noexcept {
    at(newest_).sum += value;
    at(newest_).count += count;
  }
  // Weighted mean of the values; 0 when there are none.
  [[nodiscard]] TimeNs mean() const noexcept {
    std::int64_t sum = 0, count = 0;
    for (std::int64_t i = 0; i < kBins; ++i) {
      const Bin& bin = bins_[static_cast<std::size_t>((newest_ + kBins - i) % kBins)];
      sum += bin.sum * (kBins - i);
      count += bin.count * (kBins - i);
    }
    return count > 0 ? sum / count : 0;
  }
  // Events per 1000 s over the last `bins` completed bins.
  [[nodiscard]] std::int64_t rate_millihertz(std::int64_t bins) const noexcept {
    std::int64_t count = 0;
    for (std::int64_t i = 1; i <= bins; ++i)
      count += bins_[static_cast<std::size_t>((newest_ + kBins - i) % kBins)].count;
    return count * 1'000'000'000 / (bin_ns_ * bins / 1000);
  }
  // The same over the whole window, with falling weights.
  [[nodiscard]] std::int64_t smooth_millihertz() const noexcept {
    std::int64_t count = 0;
    for (std::int64_t i = 1; i < kBins; ++i) {
      count += bins_[static_cast<std::size_t>((newest_ + kBins - i) % kBins)].count * (kBins - i);
    }
    return count * 1'000'000'000 / (bin_ns_ * (kBins * (kBins - 1) / 2) / 1000);
  }
  [[nodiscard]] std::int64_t bins_per(TimeNs length_ns) const noexcept {
    return std::clamp<std::int64_t>(length_ns / bin_ns_, 1, kBins - 1);
  }

 private:
  struct Bin {
    TimeNs sum = 0;
    std::int64_t count = 0;
  };
  Bin& at(std::int64_t bin) noexcept { return bins_[static_cast<std::size_t>(bin % kBins)]; }

  TimeNs bin_ns_;
  std::int64_t newest_ = 0;
  TimeNs newest_end_ns_ = bin_ns_;
  std::array<Bin, static_cast<std::size_t>(kBins)> bins_{};
};

}  // namespace leat::papers
