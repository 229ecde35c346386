// Up to where a stream has been served, and so which of several streams' pictures goes first where deadlines do not
// decide: the one rule of all that take turns (policy/freshest.h, grants/grants.h).
//
// A picture is worth by how much it would bring its stream on, less its age when it begins. Of streams that are as far
// behind, the freshest picture goes first, so that most are hardly older than they were when they came.
//
// How far behind a stream is must remember more than the last picture: streams whose pictures come at unlucky moments
// would be passed over each time. So what is sent takes a stream an eighth of the way, and it lies behind by eight
// times the mean time between its pictures that are sent. Whoever had fewer of late has his turn first, and shares come
// out alike, whatever the phases and the rates.
#pragma once

#include <algorithm>

#include "engine/core/types.h"

namespace leat::core {

class ServedUpTo {
 public:
  // By how much a picture of that capture time would bring the stream on: 1 or more.
  [[nodiscard]] TimeNs behind_ns(TimeNs capture_ns) const noexcept {
    return up_to_ns_ == kNothing ? kMostNs : std::clamp<TimeNs>(capture_ns - up_to_ns_, 1, kMostNs);
  }
  // What it is worth when it begins.
  [[nodiscard]] TimeNs worth_ns(TimeNs capture_ns, TimeNs start_ns) const noexcept {
    return behind_ns(capture_ns) - (start_ns - capture_ns);
  }
  // A picture of that time has been sent.
  void sent(TimeNs capture_ns) noexcept {
    if (capture_ns <= up_to_ns_) return;
    const TimeNs behind = up_to_ns_ == kNothing ? kFirstNs : behind_ns(capture_ns);
    up_to_ns_ = capture_ns - (behind - behind / kSteps);
  }

 private:
  static constexpr TimeNs kNothing = INT64_MIN;
  static constexpr TimeNs kSteps = 8;
  static constexpr TimeNs kFirstNs = 1'000'000'000;  // so far behind is who has had nothing yet, once he has
  static constexpr TimeNs kMostNs = 60'000'000'000;  // and who has had nothing for long
  TimeNs up_to_ns_ = kNothing;
};

}  // namespace leat::core
