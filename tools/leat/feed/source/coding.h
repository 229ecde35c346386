// How a source's pictures are coded, and who says so: what a feeder states of each frame, and `leat try` of each
// source. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "shm/src/protocol/color.h"

namespace leat::tools {

struct Coding {
  enum class Family : std::uint8_t { yuv, gray, rgb };
  // Who states `color`. What is unspecified follows the default rule (leat/frame_format.h).
  enum class From : std::uint8_t { nobody, stream, jpeg, image, device, options };
  Family family = Family::yuv;
  shm::Color color;  // of yuv and gray; unspecified: nobody says
  From from = From::nobody;
  bool operator==(const Coding&) const = default;
};

// What `said` leaves open stays as it is coded; what it says overrides that.
[[nodiscard]] Coding overridden(Coding coding, shm::Color said);

// As color_text() has it (shm/src/protocol/color_text.h), with who states it: "full range, BT.601 (JPEG)". lines: the
// picture's height.
[[nodiscard]] std::string text_of(const Coding& coding, std::uint32_t lines);

// As a V4L2 device states the pixels that it captures: fields of v4l2_pix_format. A default stands for what V4L2 says
// that it stands for; of a colorspace that is itself the default nothing is known.
[[nodiscard]] shm::Color color_of_v4l2(std::uint32_t colorspace, std::uint32_t ycbcr_enc, std::uint32_t quantization);

// Of a device (/dev/video0) whose format is set. Nothing stated where it cannot be asked.
[[nodiscard]] shm::Color color_of_device(const std::string& path);

}  // namespace leat::tools
