// What is agreed with a coordinated stream, what it says, and what it is told: when the server wants a frame. Plain
// values; times are nanoseconds of the driver's clock.
#pragma once

#include <array>
#include <cstdint>

#include "engine/core/streams/coordinator/coordinator.h"
#include "engine/core/types.h"

namespace leat::core {

struct Terms {
  double sla_drop = 0;   // accuracy that may be lost, 0..1, in the mean over a second; 0: not coordinated
  TimeNs period_ns = 0;  // of its camera, until it says better; needed
  double weight = 1;     // who costs most for its weight is evicted first
  double max_share = 1;  // of a partition
  // Streams of one application with the same group are tasks of one client: one at a time is asked for a frame, which
  // one the least weighted loss of all of them decides. 0: by itself.
  std::uint64_t group = 0;
  double task_weight = 1;  // above 0
  double local = 1;        // what the task loses where a local algorithm runs in the tracker's place; 1: it has none
};

// What a client says at an answer: how far its tracking was from the answer, after how many frames.
struct Observation {
  std::uint32_t stride = 0;  // 1..255
  double drop = 0;           // 0..1
  TimeNs period_ns = 0;      // of its camera, as it sees it; 0: no news
  bool far = false;          // from an older answer than the one before (leat/look_back.hpp)
  double expected = -1;      // what it had expected the drop to be, 0..1 (leat/certainty.hpp); below 0: it does not say
};

inline constexpr std::size_t kScheduledFrames = 24;  // told ahead; far more than until the next plan

struct ScheduledFrame {
  TimeNs at_ns = 0;    // the newest frame taken until then
  bool probe = false;  // and the one before it
};

struct StreamSchedule {
  streams::StreamView view;
  // Of a stream that waits for grants: whether every frame is wanted, else one for each turn.
  bool open = true;
  std::uint64_t granted = 0;  // turns so far
  std::uint32_t count = 0;
  std::array<ScheduledFrame, kScheduledFrames> frames{};  // the first `count`, in order of time
};

}  // namespace leat::core
