// Clients of coordinated streams, as the simulator plays them: each takes a frame every period, sends those that its
// schedule asks for, keeps tracking from the last answer, and says at each answer what tracking had lost.
//
// A frame is sent when it is taken: the newest taken until the scheduled time, of a probe also the one before it.
// Deterministic. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/schedule.h"
#include "engine/core/scheduler.h"
#include "leat/look_back.hpp"

namespace leat::sim {

using core::TimeNs;

struct Camera {
  std::uint32_t stream = 0;        // of Scenario::streams, with terms: its period is theirs
  TimeNs phase_ns = 0;             // when it takes frame 0
  TimeNs until_ns = core::kNever;  // it is gone from then on
  // How far tracking from the answer of `frame` is from the answer `stride` frames later: 0..1.
  std::function<double(std::uint64_t frame, std::uint32_t stride)> seen;
};

// Of each camera's stream.
[[nodiscard]] inline std::vector<TimeNs> periods_of(std::span<const Camera> cameras,
                                                    std::span<const core::StreamConfig> streams) {
  std::vector<TimeNs> out;
  for (const Camera& c : cameras) out.push_back(streams[c.stream].terms.period_ns);
  return out;
}

class Cameras {
 public:
  struct Sent {
    std::uint32_t camera = 0;
    std::uint64_t frame = 0;
    TimeNs capture_ns = 0;
  };
  // `cameras` outlives this. period_ns[i]: of cameras[i].
  Cameras(std::span<const Camera> cameras, std::vector<TimeNs> period_ns);

  void told(TimeNs now, std::uint32_t camera, const core::StreamSchedule& schedule);
  [[nodiscard]] TimeNs next() const noexcept { return next_ns_; }  // when a frame is sent; kNever
  [[nodiscard]] Sent send();                                       // precondition: next() != kNever
  // An answer has come for that frame: what the client reports, if it had something to compare it with.
  struct Reports {
    std::optional<core::Observation> last, far;
  };
  Reports answered(std::uint32_t camera, std::uint64_t frame);
  // The frame that is carried on, newest answered.
  [[nodiscard]] std::optional<std::uint64_t> source(std::uint32_t camera) const { return state_[camera].source; }

 private:
  struct State {
    core::StreamSchedule schedule;
    std::uint32_t at = 0;        // of the schedule's frames: the next to be sent
    bool older = false;          // of a probe: its older frame has been sent
    TimeNs done_ns = INT64_MIN;  // scheduled time of the last one sent
    std::optional<std::uint64_t> sent, source;
    LookBack look;
    TimeNs next_ns = core::kNever;
  };
  void look(TimeNs now, std::uint32_t camera);
  [[nodiscard]] std::uint64_t wanted(std::uint32_t camera) const;

  std::span<const Camera> cameras_;
  std::vector<TimeNs> period_ns_;
  std::vector<State> state_;
  std::uint32_t first_ = 0;
  TimeNs next_ns_ = core::kNever;
};

}  // namespace leat::sim
