#include "engine/core/streams/estimator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace leat::core::streams {
namespace {

double fading(TimeNs passed, TimeNs half_life) noexcept {
  return std::exp2(-static_cast<double>(std::max<TimeNs>(0, passed)) / static_cast<double>(half_life));
}

}  // namespace

void DropEstimator::observe(TimeNs now, std::uint32_t stride, double drop, const StrideCurve& curve) noexcept {
  if (stride == 0) return;
  if (settings_.kind == Estimation::ratio) {
    slope_ = std::max(kMinSlope, drop / curve.at(stride));
    jitter_ = 0;
    settled_ += (slope_ - settled_) / 32;
    ++seen_;
    return;
  }
  const double x = curve.at(stride), y = jitter_ + loss(drop);
  if (seen_ > 0) {
    fast_.fade(fading(now - last_ns_, settings_.slope_half_life_ns));
    slow_.fade(fading(now - last_ns_, settings_.jitter_half_life_ns));
  }
  last_ns_ = std::max(last_ns_, now);
  ++seen_;
  fast_.add(x, y);
  slow_.add(x, y);
  fit(curve);
}

double DropEstimator::loss(double seen) const noexcept {
  const double f = jitter_ / std::numbers::sqrt2;
  // Below the jitter, as steep as there: what is less by chance must weigh as much as what is more.
  if (seen <= jitter_) return (seen - jitter_) * std::numbers::sqrt2;
  return std::sqrt(seen * seen - f * f) - f;
}

void DropEstimator::fit(const StrideCurve& curve) noexcept {
  const double prior_x = curve.at(static_cast<std::uint32_t>(settings_.prior_stride));
  // The line through everything remembered, with the prior as two observations of its own: one at stride 0, one at
  // prior_stride. Without different strides the prior alone says how much of the distance is jitter.
  Sums s = slow_;
  s.add(0, settings_.prior_jitter);
  s.add(prior_x, settings_.prior_jitter + settings_.prior_slope * prior_x);
  const double spread = s.n * s.xx - s.x * s.x;
  settled_ = std::max(kMinSlope, (s.n * s.xy - s.x * s.y) / spread);
  jitter_ = std::max(0.0, (s.y - settled_ * s.x) / s.n);
  // The slope now, through that jitter; what it has been for a while is worth one observation at prior_stride.
  const double weight = fast_.xx + prior_x * prior_x;
  slope_ = std::max(kMinSlope, (fast_.xy - jitter_ * fast_.x + settled_ * prior_x * prior_x) / weight);
}

}  // namespace leat::core::streams
