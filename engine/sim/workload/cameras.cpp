#include "engine/sim/workload/cameras.h"

#include <algorithm>

namespace leat::sim {

Cameras::Cameras(std::span<const Camera> cameras, std::vector<TimeNs> period_ns)
    : cameras_(cameras), period_ns_(std::move(period_ns)), state_(cameras.size()) {}

void Cameras::told(TimeNs now, std::uint32_t camera, const core::StreamSchedule& schedule) {
  State& s = state_[camera];
  const bool half = s.older && s.at < s.schedule.count;
  const TimeNs half_of = half ? s.schedule.frames[s.at].at_ns : 0;
  s.schedule = schedule;
  s.at = 0;
  while (s.at < schedule.count && schedule.frames[s.at].at_ns <= s.done_ns) ++s.at;
  s.older = half && s.at < schedule.count && schedule.frames[s.at].at_ns == half_of;
  look(now, camera);
}

std::uint64_t Cameras::wanted(std::uint32_t camera) const {
  const State& s = state_[camera];
  const core::ScheduledFrame& f = s.schedule.frames[s.at];
  const TimeNs since = f.at_ns - cameras_[camera].phase_ns;
  const auto newest = static_cast<std::uint64_t>(std::max<TimeNs>(0, since / period_ns_[camera]));
  return f.probe && !s.older && newest > 0 ? newest - 1 : newest;
}

// When the camera sends next.
void Cameras::look(TimeNs now, std::uint32_t camera) {
  const Camera& c = cameras_[camera];
  State& s = state_[camera];
  s.next_ns = core::kNever;
  for (; s.at < s.schedule.count; ++s.at, s.older = false) {
    const std::uint64_t frame = wanted(camera);
    if (s.sent && frame <= *s.sent) continue;
    s.next_ns = std::max(now, c.phase_ns + static_cast<TimeNs>(frame) * period_ns_[camera]);
    if (s.next_ns >= c.until_ns) s.next_ns = core::kNever;
    break;
  }
  next_ns_ = core::kNever;
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    if (state_[i].next_ns >= next_ns_) continue;
    next_ns_ = state_[i].next_ns;
    first_ = i;
  }
}

Cameras::Sent Cameras::send() {
  const std::uint32_t camera = first_;
  State& s = state_[camera];
  const TimeNs now = s.next_ns;
  const core::ScheduledFrame f = s.schedule.frames[s.at];
  const Sent out{camera, wanted(camera),
                 cameras_[camera].phase_ns + static_cast<TimeNs>(wanted(camera)) * period_ns_[camera]};
  s.sent = out.frame;
  if (f.probe && !s.older) {
    s.older = true;
  } else {
    s.older = false;
    s.done_ns = f.at_ns;
    ++s.at;
  }
  look(now, camera);
  return out;
}

Cameras::Reports Cameras::answered(std::uint32_t camera, std::uint64_t frame) {
  State& s = state_[camera];
  Reports out;
  if (s.source && frame <= *s.source) return out;
  const auto report = [&](std::uint64_t source, bool far) {
    const auto stride = static_cast<std::uint32_t>(std::min<std::uint64_t>(frame - source, 255));
    const double drop = std::clamp(cameras_[camera].seen(source, stride), 0.0, 1.0);
    return core::Observation{.stride = stride, .drop = drop, .far = far};
  };
  if (s.source) out.last = report(*s.source, false);
  if (const auto from = s.look.answered(frame)) out.far = report(*from, true);
  s.source = frame;
  return out;
}

}  // namespace leat::sim
