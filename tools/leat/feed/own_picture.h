// A picture in memory of its own, and copied from one memory into another. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {

// Memory for one picture, tight. Its colors are the format's.
struct OwnPicture {
  explicit OwnPicture(const PictureFormat& format);
  OwnPicture(const OwnPicture&) = delete;
  OwnPicture& operator=(const OwnPicture&) = delete;
  leat_frame frame{};
  std::vector<std::uint8_t> pixels;
};

// Precondition: the same format and size.
void copy_picture(const leat_frame& from, const leat_frame& to);

}  // namespace leat::tools
