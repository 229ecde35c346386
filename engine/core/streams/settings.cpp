#include "engine/core/streams/settings.h"

#include <algorithm>
#include <cmath>

namespace leat::core::streams {

std::uint32_t frames_until_answer(TimeNs batch_ns, const Pace& pace, double grace) noexcept {
  const double ns = static_cast<double>(batch_ns) * (1 + grace) + static_cast<double>(pace.path_ns);
  // What rounding adds to a whole number of frames is no frame.
  const double frames = std::ceil(ns / static_cast<double>(pace.period_ns) - 1e-6);
  return static_cast<std::uint32_t>(std::clamp(frames, 1.0, static_cast<double>(kLongestStride)));
}

double reference_mean(TimeNs single_ns, const Pace& pace, double grace, const StrideCurve& curve) noexcept {
  const std::uint32_t k = frames_until_answer(single_ns, pace, grace);
  return curve.mean(k, k);
}

double first_stride(TimeNs batch_ns, const Pace& pace, double grace) noexcept {
  if (!pace.any_phase) return frames_until_answer(batch_ns, pace, grace);
  const auto ns = static_cast<double>(batch_ns + pace.path_ns);  // the grace is for late frames, not for every batch
  return std::min<double>(kLongestStride, ns / static_cast<double>(pace.period_ns) + 1);
}

namespace {

// Over strides k .. k+interval-1.
double mean_from(double k, std::uint32_t interval, const StrideCurve& curve) noexcept {
  const auto whole = static_cast<std::uint32_t>(k);
  const double part = k - whole, at = curve.mean(whole, interval);
  return part == 0 ? at : at + part * (curve.mean(whole + 1, interval) - at);
}

}  // namespace

std::uint32_t longest_interval(double k, double max, const StrideCurve& curve) noexcept {
  if (curve.straight()) {
    const double oi = std::floor(2 * (max - k) + 1 + 1e-9);
    return oi < 1 ? 0 : static_cast<std::uint32_t>(std::min<double>(oi, kLongestInterval));
  }
  if (mean_from(k, 1, curve) > max) return 0;
  // The mean grows with the interval: by halving.
  std::uint32_t fits = 1, over = kLongestInterval + 1;
  while (over - fits > 1) {
    const std::uint32_t middle = (fits + over) / 2;
    (mean_from(k, middle, curve) <= max ? fits : over) = middle;
  }
  return fits;
}

double fitting_interval(double k, double max, const StrideCurve& curve) noexcept {
  const std::uint32_t fits = longest_interval(k, max, curve);
  if (fits == 0 || fits == kLongestInterval) return fits;
  const double at = mean_from(k, fits, curve), after = mean_from(k, fits + 1, curve);
  return after > at ? fits + std::clamp((max - at) / (after - at), 0.0, 1.0) : fits;
}

Setting best_setting(std::span<const TimeNs> batch_ns, const Pace& pace, double grace, double budget,
                     const StrideCurve& curve) noexcept {
  const double max = budget + reference_mean(batch_ns[0], pace, grace, curve);
  Setting best;
  double streams = 0;
  for (std::uint32_t b = 1; b <= batch_ns.size(); ++b) {
    const std::uint32_t interval = longest_interval(first_stride(batch_ns[b - 1], pace, grace), max, curve);
    if (interval == 0) break;  // larger batches take longer
    const double each_ns = static_cast<double>(batch_ns[b - 1]) * (1 + grace) / b;
    const double every_ns = static_cast<double>(interval) * static_cast<double>(pace.period_ns);
    if (every_ns / each_ns <= streams) continue;
    streams = every_ns / each_ns;
    best = {.interval = static_cast<double>(interval), .batch = b, .load = 1 / streams};
  }
  if (streams == 0) {  // not even alone: as often as it can, by itself
    const std::uint32_t k = frames_until_answer(batch_ns[0], pace, grace);
    best = {.interval = static_cast<double>(k), .batch = 1};
    best.load = static_cast<double>(batch_ns[0]) * (1 + grace) / (k * static_cast<double>(pace.period_ns));
  }
  return best;
}

}  // namespace leat::core::streams
