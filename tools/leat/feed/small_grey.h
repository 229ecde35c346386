// The brightness of a picture as trackers look at it: means of n x n pixels, n the least with which it is at most so
// wide. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "leat/tracking.hpp"
#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {

// What a client tracks on. A rule of what a tracker expects to have lost (leat/certainty.hpp) goes by it too.
inline constexpr std::uint32_t kTrackedWidth = 320;

class SmallGrey {
 public:
  // Precondition: pixels, not tensors.
  SmallGrey(const PictureFormat& format, std::uint32_t widest);
  void take(const leat_frame& picture);  // of that format and size
  [[nodiscard]] GreyFrame view() const { return {pixels_.data(), width_, height_, width_}; }
  [[nodiscard]] std::uint32_t scale() const { return scale_; }

 private:
  std::uint32_t scale_, width_, height_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint32_t> sums_;  // of a row
};

}  // namespace leat::tools
