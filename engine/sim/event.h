// What is to happen in a simulated run, and when.
#pragma once

#include <cstdint>

#include "engine/core/types.h"

namespace leat::sim {

using core::TimeNs;

enum class EventKind : std::uint8_t { stage_end, reach, begin, estimate, transfer, written };

struct Event {
  TimeNs at = 0;
  std::uint64_t serial = 0;  // equal times: in the order in which they were planned
  EventKind kind = EventKind::stage_end;
  std::uint32_t batch = 0;  // or partition, or stream
  std::uint32_t life = 0;   // of that slot: an event about a batch that is gone is ignored
  std::uint32_t to = 0;     // transfer: partitions and arrival
  TimeNs takes_ns = 0;
};
// std::*_heap keep the largest first; the largest is the earliest.
struct Later {
  bool operator()(const Event& a, const Event& b) const { return a.at != b.at ? a.at > b.at : a.serial > b.serial; }
};

}  // namespace leat::sim
