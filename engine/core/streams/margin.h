// How much steeper than it looks a stream's slope is taken to be, because content changes faster than it is seen: so
// many times the stream's own long mean is added to the slope of the moment. The number comes from how the seconds
// before went: each that was measured says how much would have been right for it, (its slope - the slope of the moment
// when it began) / long mean, and the number is what was right for all but a share `miss` of them. What all streams of
// its user showed is where a stream begins, and counts as `weight` seconds of its own. Both forget.
//
// What is added, and not multiplied, keeps a slope that looks like nothing for a moment from being believed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace leat::core::streams {

struct MarginSettings {
  bool on = true;  // off: the thesis's, none
  double miss = 0.035;
  double first = 1;             // before anything was measured
  double weight = 30;           // seconds
  double own_seconds = 60;      // that a stream remembers, and
  double shared_seconds = 600;  // that all of them do together
  double max = 8;               // that one stream can make right for the others
};

// How often which number was right: shares of intervals between -2 and 14, forgotten as new ones come.
class MarginShares {
 public:
  // Remembers about `seconds`.
  void add(double right, double seconds) noexcept {
    for (float& each : shares_) each *= static_cast<float>(1 - 1 / seconds);
    weight_ = weight_ * (1 - 1 / seconds) + 1;
    shares_[at(right)] += 1;
  }
  // The number that was right for all but `miss` of these and of `others`, which count as much as `weight` of them.
  [[nodiscard]] double all_but(double miss, const MarginShares& others, double weight) const noexcept {
    const double scale = others.weight_ > 0 ? weight / others.weight_ : 0;
    double left = miss * (weight_ + scale * others.weight_);
    for (std::size_t i = kShares; i-- > 0;) {
      const double here = shares_[i] + scale * others.shares_[i];
      if (here > 0 && here >= left) return kMin + kWidth * (static_cast<double>(i) + 1 - left / here);
      left -= here;
    }
    return kMin;
  }

 private:
  static constexpr std::size_t kShares = 64;
  static constexpr double kMin = -2, kWidth = 0.25;
  static std::size_t at(double right) noexcept {
    return static_cast<std::size_t>(std::clamp((right - kMin) / kWidth, 0.0, kShares - 1.0));
  }
  std::array<float, kShares> shares_{};
  double weight_ = 0;
};

class SharedMargin {
 public:
  explicit SharedMargin(const MarginSettings& s) noexcept {
    // As if seconds had been such that `first` is right: falling off as quickly on both sides of nothing.
    for (int i = 1; i < 20; ++i) shares_.add(s.first * std::log(20.0 / i) / std::log(20.0), s.shared_seconds);
  }
  [[nodiscard]] const MarginShares& shares() const noexcept { return shares_; }
  void measured(double right, const MarginSettings& s) noexcept { shares_.add(right, s.shared_seconds); }

 private:
  MarginShares shares_;
};

class Margin {
 public:
  // A second has gone by in which the slope was `slope`. The next one begins with `next` and the long mean `settled`.
  void measured(SharedMargin& shared, double slope, double next, double settled, const MarginSettings& s) noexcept {
    if (settled_ > 0) {
      const double right = (slope - slope_) / settled_;
      shares_.add(right, s.own_seconds);
      shared.measured(std::min(right, s.max), s);
    }
    slope_ = next;
    settled_ = settled;
    value_ = std::max(0.0, shares_.all_but(s.miss, shared.shares(), s.weight));
  }
  // The share of the SLA that is left alone, for a slope of the moment and its long mean.
  [[nodiscard]] double value(const SharedMargin& shared, double slope, double settled,
                             const MarginSettings& s) const noexcept {
    if (!s.on) return 0;
    const double more =
        settled_ > 0 ? value_ : std::max(0.0, MarginShares().all_but(s.miss, shared.shares(), s.weight));
    return 1 - slope / (slope + more * settled);
  }

 private:
  MarginShares shares_;
  double slope_ = 0, settled_ = 0;  // when this second began
  double value_ = 0;
};

}  // namespace leat::core::streams
