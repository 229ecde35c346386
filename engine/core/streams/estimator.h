// What one frame of tracking costs a stream in accuracy, from what its client reports at answers: the distance between
// the tracked result and the new answer of the same frame, at a known stride.
//
// Detections flicker, that which is tracked as much as that which it is compared with, so that a client sees
// sqrt(drift^2 + 2 f^2), which is jitter = sqrt(2) f where nothing has drifted; what it loses beside a detection of the
// same frame is sqrt(drift^2 + f^2) - f, which is more than what it sees above the jitter. loss() is the one from the
// other:  sqrt(seen^2 - f^2) - f.
//
//   line    jitter + slope * x(stride), of jitter + loss(seen), by regression with two memories: the jitter (what the
//           detector itself flickers, which is no loss of tracking) is forgotten slowly, the slope quickly, because
//           content changes within a second. Before there is anything to go by: the prior of the application.
//   ratio   the thesis's d / L of the last observation (section 3.4.3). It takes the detector's flicker for loss.
//
// O(1) per observation, no allocation. One thread.
#pragma once

#include <cstdint>

#include "engine/core/streams/strides.h"
#include "engine/core/types.h"

namespace leat::core::streams {

enum class Estimation : std::uint8_t { line, ratio };

struct EstimatorSettings {
  Estimation kind = Estimation::line;
  TimeNs slope_half_life_ns = 2'000'000'000;
  TimeNs jitter_half_life_ns = 20'000'000'000;
  double prior_slope = 0.005;  // per frame
  double prior_jitter = 0.05;
  double prior_stride = 4;  // the prior of the slope weighs as much as one observation at this stride
};

class DropEstimator {
 public:
  explicit DropEstimator(const EstimatorSettings& settings = {}) noexcept
      : settings_(settings),
        slope_(settings.prior_slope),
        jitter_(settings.prior_jitter),
        settled_(settings.prior_slope) {}

  // `drop` in 0..1. Observations of stride 0 say nothing and are ignored.
  void observe(TimeNs now, std::uint32_t stride, double drop, const StrideCurve& curve) noexcept;

  [[nodiscard]] double slope() const noexcept { return slope_; }      // per unit of x, never below kLeastSlope
  [[nodiscard]] double settled() const noexcept { return settled_; }  // over the memory of the jitter
  [[nodiscard]] double jitter() const noexcept { return jitter_; }    // 0 with Estimation::ratio
  // What was lost beside a detection of the same frame where `seen` is the distance to it; below 0 by chance.
  [[nodiscard]] double loss(double seen) const noexcept;
  [[nodiscard]] std::uint32_t observations() const noexcept { return seen_; }

  static constexpr double kMinSlope = 1e-5;

 private:
  struct Sums {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    void fade(double by) noexcept { n *= by, x *= by, y *= by, xx *= by, xy *= by; }
    void add(double ax, double ay) noexcept { n += 1, x += ax, y += ay, xx += ax * ax, xy += ax * ay; }
  };
  void fit(const StrideCurve& curve) noexcept;

  EstimatorSettings settings_;
  Sums fast_, slow_;
  double slope_, jitter_, settled_;
  TimeNs last_ns_ = 0;
  std::uint32_t seen_ = 0;
};

}  // namespace leat::core::streams
