// The last frames of each stream, one by one, as the flight recorder tells of them. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>

#include "leat/outcome.h"
#include "shm/src/counters/counters.h"

namespace leat::tools::top {

struct LastFrame {
  Outcome outcome = Outcome::completed;
  std::int64_t latency_ns = 0;  // capture to answer
};

class LastFrames {
 public:
  // Oldest first.
  void take(std::span<const shm::Event> events);
  void clear() { frames_.clear(); }
  // Oldest first; of the stream that has that record now. Null: nothing is known of it.
  [[nodiscard]] const std::deque<LastFrame>* of(std::uint32_t stream) const noexcept;

 private:
  static constexpr std::size_t kKept = 198;  // as many as the widest screen has place for
  std::map<std::uint32_t, std::deque<LastFrame>> frames_;
};

}  // namespace leat::tools::top
