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
  [[nodiscard]] bool waited() const noexcept { return waited_ns >= 1'000'000; }  // rather than found in a buffer
};

}  // namespace leat::tools
