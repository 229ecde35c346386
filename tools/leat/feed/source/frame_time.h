// What a source says of a frame's time.
#pragma once

#include <cstdint>

namespace leat::tools {

// The time of a frame that has none.
inline constexpr std::int64_t kNoTime = INT64_MIN;

// Of a live source: when the data of a frame were there, and for how long they were waited for since the frame before.
// All 0 of a file.
struct FrameArrival {
  std::int64_t at_ns = 0, waited_ns = 0;
  [[nodiscard]] bool waited() const noexcept { return waited_ns > 0; }
  // Data that were asked for at `from_ns` are there. What takes less than a millisecond was found in a buffer.
  void read(std::int64_t from_ns, std::int64_t now_ns) noexcept {
    at_ns = now_ns;
    waited_ns += now_ns - from_ns >= 1'000'000 ? now_ns - from_ns : 0;
  }
};

}  // namespace leat::tools
