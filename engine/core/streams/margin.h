// How much steeper than it looks a stream's slope is taken to be, because content changes faster than it is seen: so
// many times the stream's own long mean is added to the slope of the moment. The number comes by closed loop, so that
// the share of whole seconds that break the SLA stays at `miss`: each second that was measured moves it, up by (1 -
// miss) of a step where the SLA was broken and down by `miss` of it where not; it rests where that share is met. All
// streams of a coordinator move one such number together, each one another of its own. What is added, and not
// multiplied, keeps a slope that looks like nothing for a moment from being believed.
#pragma once

#include <algorithm>
#include <cstddef>

namespace leat::core::streams {

struct MarginSettings {
  bool on = true;  // off: the thesis's, none
  double miss = 0.02;
  double shared_step = 3;  // of the shared one, for the seconds of all streams together
  double own_step = 0.5;
  double first = 1;   // of the shared one
  double most = 4;    // of either
  double errors = 0;  // how many of the estimator's own standard errors are added
};

class SharedMargin {
 public:
  explicit SharedMargin(const MarginSettings& s) noexcept : value_(s.first) {}
  void measured(bool broken, std::size_t streams, const MarginSettings& s) noexcept {
    const double step = s.shared_step / static_cast<double>(std::max<std::size_t>(1, streams));
    value_ = std::clamp(value_ + step * ((broken ? 1 : 0) - s.miss), 0.0, s.most);
  }
  [[nodiscard]] double value() const noexcept { return value_; }

 private:
  double value_;
};

class Margin {
 public:
  void measured(bool broken, const MarginSettings& s) noexcept {
    own_ = std::clamp(own_ + s.own_step * ((broken ? 1 : 0) - s.miss), 0.0, s.most);
  }
  // The share of the SLA that is left alone, for a slope of the moment, its error, and its long mean.
  [[nodiscard]] double value(const SharedMargin& shared, double slope, double error, double settled,
                             const MarginSettings& s) const noexcept {
    return s.on ? 1 - slope / (slope + (shared.value() + own_) * settled + s.errors * error) : 0;
  }

 private:
  double own_ = 0;
};

}  // namespace leat::core::streams
