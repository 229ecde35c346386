// Whether what is believed of a module's latency scale is plainly wrong: then it is set anew at once instead of being
// smoothed towards what is seen.
//
// A latency scale is what a module's batches take of their profiled time, in millionths. It falls as far as is seen. It
// rises at once only up to the profile's word: beyond that one user's frames may be dearer than others', and those are
// not to condemn the others' (costs.cpp finds whose they are).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/core/types.h"

namespace leat::core {

inline constexpr std::int64_t kProfilePpm = 1'000'000;
inline constexpr std::int64_t kMinPart = 64;  // of its profiled time: less is not believed of a batch
inline constexpr std::int64_t kMaxTimes = 4;  // its profiled time: nor more

// The part of its profiled time that a run is believed to have taken.
[[nodiscard]] inline std::int64_t believed_ppm(TimeNs planned, TimeNs ran) noexcept {
  return std::clamp(ran, planned / kMinPart, kMaxTimes * planned) * kProfilePpm / planned;
}

// The latency scale after something was seen that is to count at once.
[[nodiscard]] inline std::int64_t corrected_ppm(std::int64_t scale, std::int64_t seen) noexcept {
  return seen < scale ? seen : std::max(scale, std::min(seen, kProfilePpm));
}

// Batches in a row that all took less than half of what the latency scale says; or, where that is below the profile,
// more than twice as much.
class FarOff {
 public:
  // What they took of their profiled time, when there have been enough of them; else 0.
  [[nodiscard]] std::int64_t seen(TimeNs planned, TimeNs ran, std::int64_t scale_ppm) noexcept {
    const std::int64_t here = believed_ppm(planned, ran);
    const int side = 2 * here < scale_ppm ? -1 : scale_ppm < kProfilePpm && here > 2 * scale_ppm ? 1 : 0;
    if (side == 0 || side != side_) *this = FarOff{};
    if (side == 0) return 0;
    side_ = side;
    sum_ppm_ += here;
    if (++batches_ < kBatches) return 0;
    const std::int64_t mean = sum_ppm_ / batches_;
    *this = FarOff{};
    return mean;
  }

 private:
  static constexpr std::int64_t kBatches = 8;
  int side_ = 0;
  std::int64_t batches_ = 0, sum_ppm_ = 0;
};

}  // namespace leat::core
