// What a coordinated client has shown: second by second, how much more its boxes were off than those of a client with a
// partition of its own, by a table of what tracking loses. A second is kept where the mean over its frames is within
// the SLA. It counts what was shown while the stream was admitted, from its first answer on.
//
// The reference: a partition of its own, one frame after the other, has strides k .. 2k-1, k frames being what a batch
// of one takes. One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "engine/core/types.h"

namespace leat::sim {

class Shown {
 public:
  struct Film {
    core::TimeNs phase_ns = 0, period_ns = 16'666'667;
    double sla_drop = 0.06;
    std::uint32_t single = 1;  // k
    core::TimeNs from_ns = 0;  // frames before are not counted
    // What is lost on the frame `stride` behind `frame` by tracking from there, beyond a detection of that very frame.
    std::function<double(std::uint64_t frame, std::uint32_t stride)> extra;
  };
  explicit Shown(Film film) : film_(std::move(film)) {}

  void answer(core::TimeNs at, std::uint64_t frame) {
    show(at);
    if (source_ >= 0 && static_cast<std::int64_t>(frame) <= source_) return;
    if (source_ < 0) next_ = std::max(next_, first_at(at));
    source_ = static_cast<std::int64_t>(frame);
  }
  void show(core::TimeNs until) {  // all frames before, with what there is
    const std::int64_t end = first_at(until);
    if (source_ < 0) next_ = std::max(next_, end);
    for (; next_ < end; ++next_) {
      if (film_.phase_ns + next_ * film_.period_ns < film_.from_ns) continue;
      const auto stride = static_cast<std::uint32_t>(next_ - source_);
      double reference = 0;
      for (std::uint32_t s = film_.single; s < 2 * film_.single; ++s)
        if (next_ >= s) reference += film_.extra(static_cast<std::uint64_t>(next_ - s), s) / film_.single;
      lost_ += film_.extra(static_cast<std::uint64_t>(source_), stride) - reference;
      if (++frames_ * static_cast<double>(film_.period_ns) < 1e9) continue;
      ++seconds_;
      kept_ += lost_ / frames_ <= film_.sla_drop ? 1 : 0;
      whole_ += lost_ / frames_;
      lost_ = 0;
      frames_ = 0;
    }
  }
  void evicted(core::TimeNs at) {
    show(at);
    source_ = -1;
    lost_ = 0;
    frames_ = 0;
  }
  [[nodiscard]] std::uint32_t seconds() const noexcept { return seconds_; }
  [[nodiscard]] std::uint32_t kept() const noexcept { return kept_; }
  [[nodiscard]] double mean_drop() const noexcept { return seconds_ == 0 ? 0 : whole_ / seconds_; }

 private:
  [[nodiscard]] std::int64_t first_at(core::TimeNs at) const {
    const core::TimeNs since = at - film_.phase_ns;
    return since <= 0 ? 0 : (since + film_.period_ns - 1) / film_.period_ns;
  }
  Film film_;
  std::int64_t source_ = -1, next_ = 0;
  double frames_ = 0;
  double lost_ = 0, whole_ = 0;
  std::uint32_t seconds_ = 0, kept_ = 0;
};

}  // namespace leat::sim
