// What a stream has lost in each second, by what its client reports at answers: the slope of what was lost, times how
// far its strides were above the reference. It is what closes the loop of the margin, and what a user is shown.
//
// O(1), plain data. One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "engine/core/streams/strides.h"
#include "engine/core/types.h"

namespace leat::core::streams {

class DropMeter {
 public:
  void observed(std::uint32_t stride, double loss, const StrideCurve& curve) noexcept {  // DropEstimator::loss()
    drop_ += loss;
    x_ += curve.at(stride);
  }

  // An answer for the frame of `capture_ns` serves from now on. The mean drop of the second that it ends, if it ends
  // one in which something was observed.
  struct Second {
    double drop = 0;   // mean
    double slope = 0;  // of what was lost
  };
  std::optional<Second> answered(TimeNs now, TimeNs capture_ns, TimeNs period_ns, double reference,
                                 const StrideCurve& curve) noexcept {
    const auto period = static_cast<double>(period_ns);
    if (source_ns_ != INT64_MIN) {  // the frames that the answer before has served
      const auto frames = [&](TimeNs at) {
        const double n = std::ceil(static_cast<double>(at - source_ns_) / period);
        return static_cast<std::uint32_t>(std::clamp(n, 0.0, 1e6));
      };
      const std::uint32_t first = frames(shown_ns_), end = frames(now);
      if (end > first) {
        lost_x_ += curve.sum(first, end - 1) - (end - first) * reference;
        frames_ += end - first;
      }
    }
    source_ns_ = capture_ns;
    shown_ns_ = now;
    std::optional<Second> second;
    if (frames_ * period < 1e9) return second;
    if (x_ > 0) {
      const double slope = std::max(0.0, drop_ / x_);
      second = {.drop = slope * lost_x_ / frames_, .slope = slope};
    }
    clear();
    return second;
  }
  [[nodiscard]] TimeNs source_ns() const noexcept { return source_ns_; }
  void restart() noexcept {  // what it showed before no longer counts
    source_ns_ = shown_ns_ = INT64_MIN;
    clear();
  }

 private:
  void clear() noexcept { lost_x_ = frames_ = drop_ = x_ = 0; }
  TimeNs source_ns_ = INT64_MIN, shown_ns_ = INT64_MIN;
  double lost_x_ = 0;  // above the reference, summed over frames
  double frames_ = 0;
  double drop_ = 0, x_ = 0;  // of what was observed
};

}  // namespace leat::core::streams
