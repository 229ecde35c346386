// Pictures and videos as they are to be shown: cameras and phones store them as the sensor lies, and say beside them
// how they are to be turned (EXIF's orientation, a video's display matrix). Thread rule: one thread per object.
#pragma once

#include <cstdint>
#include <vector>

#include "leat/leat.h"

namespace leat::tools {

// How a stored picture becomes what is to be seen: first mirrored left to right, then turned clockwise.
struct Turn {
  bool mirrored = false;
  int clockwise_degrees = 0;  // 0, 90, 180, 270

  [[nodiscard]] bool nothing() const { return !mirrored && clockwise_degrees == 0; }
  [[nodiscard]] bool swaps_sides() const { return clockwise_degrees % 180 != 0; }
  bool operator==(const Turn&) const = default;
};

// Of a display matrix as libavutil keeps it: three rows of three, the upper left two by two of them 16.16 fixed point.
// The nearest of the eight turns; one that is none of them (a shear) is taken for the nearest.
[[nodiscard]] Turn turn_of(const std::int32_t matrix[9]);

// A stored picture in the slot's pixel format. It has the slot's size, turned back, or one row or column more.
struct StoredPicture {
  const std::uint8_t* planes[3] = {};
  int strides[3] = {};
  int width = 0, height = 0;
};

class Upright {
 public:
  explicit Upright(Turn turn) : turn_(turn) {}
  [[nodiscard]] const Turn& turn() const noexcept { return turn_; }
  // Writes the picture, turned, into a slot of i420, rgb24, bgr24 or gray8.
  void write(const StoredPicture& from, const leat_frame& slot);

 private:
  void write_i420(const StoredPicture& from, const leat_frame& slot);

  Turn turn_;
  std::vector<std::uint8_t> mirrored_;  // i420: between the two steps, where both are needed
};

}  // namespace leat::tools
