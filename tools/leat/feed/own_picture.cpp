#include "tools/leat/feed/own_picture.h"

#include <cstring>

namespace leat::tools {

OwnPicture::OwnPicture(const PictureFormat& format) {
  const RawLayout layout = raw_layout(format.format, format.width, format.height);
  frame.format = static_cast<std::uint32_t>(format.format);
  frame.width = format.width;
  frame.height = format.height;
  frame.color_range = format.color().range;
  frame.color_matrix = format.color().matrix;
  frame.plane_count = layout.planes;
  frame.bytes = layout.bytes;
  pixels.resize(layout.bytes);
  std::uint64_t at = 0;
  for (std::uint32_t p = 0; p < layout.planes; ++p) {
    frame.planes[p] = pixels.data() + at;
    frame.strides[p] = frame.row_bytes[p] = layout.row_bytes[p];
    frame.rows[p] = layout.rows[p];
    at += std::uint64_t{layout.row_bytes[p]} * layout.rows[p];
  }
}

void copy_picture(const leat_frame& from, const leat_frame& to) {
  for (std::uint32_t p = 0; p < from.plane_count; ++p)
    for (std::uint32_t y = 0; y < from.rows[p]; ++y)
      std::memcpy(to.planes[p] + std::size_t{y} * to.strides[p], from.planes[p] + std::size_t{y} * from.strides[p],
                  from.row_bytes[p]);
}

}  // namespace leat::tools
