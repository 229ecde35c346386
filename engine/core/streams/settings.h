// The pseudo-optimal setting of one stream (thesis, section 3.4.4, step 1): how often it sends a frame and in how large
// a batch, so that a server of streams like it alone would hold the most of them:
//
//   max over bs of  bs / lat(bs) * oi     where oi is the longest interval with   mean x(k .. k+oi-1) <= budget
//
// k is the end-to-end latency in frames. For the straight curve oi has a closed form, because the mean stride is
// k + (oi-1)/2; for a bent one it is found by halving, over sums made once. O(B), or O(B log 60). Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/streams/strides.h"
#include "engine/core/types.h"

namespace leat::core::streams {

inline constexpr std::uint32_t kLongestInterval = 60;  // frames

struct Setting {
  double interval = 1;      // frames from one offloaded frame to the next, in the mean
  std::uint32_t batch = 1;  // the largest batch that it may ride in
  double load = 0;          // of one partition, in batches of that size
};

struct Pace {                     // of a stream
  TimeNs period_ns = 16'666'667;  // of its camera
  TimeNs path_ns = 0;             // from the frame to the batch's start and from its end to the client
  // Batches start at any moment of the camera's period, and not when a frame has just been taken: the newest frame is
  // half a period old in the mean, and the answer waits for the next one as long.
  bool any_phase = false;
};

// Frames from the one that is sent until the first that its answer serves, never 0.
[[nodiscard]] std::uint32_t frames_until_answer(TimeNs batch_ns, const Pace& pace, double grace) noexcept;

// The reference: the stream alone on a partition, one frame after the other. Its strides are k1 .. 2 k1 - 1.
[[nodiscard]] double reference_mean(TimeNs single_ns, const Pace& pace, double grace,
                                    const StrideCurve& curve) noexcept;

// The first stride that an answer serves at: frames_until_answer(), or with any_phase its mean, which is no whole
// number.
[[nodiscard]] double first_stride(TimeNs batch_ns, const Pace& pace, double grace) noexcept;

// The longest interval whose mean over strides k .. k+interval-1 stays within `most`; 0: not even one frame does.
// Between two whole numbers k means that often the one and that often the other.
[[nodiscard]] std::uint32_t longest_interval(double k, double max, const StrideCurve& curve) noexcept;

// The same where an interval need not be whole: with 4.5, four and five frames take turns. 0 where not even one frame
// does.
[[nodiscard]] double fitting_interval(double k, double max, const StrideCurve& curve) noexcept;

// batch_ns[b-1]: run time of a batch of b. `budget`: mean of x above the reference that the SLA leaves,
// theta(1-m)/slope.
[[nodiscard]] Setting best_setting(std::span<const TimeNs> batch_ns, const Pace& pace, double grace, double budget,
                                   const StrideCurve& curve) noexcept;

}  // namespace leat::core::streams
