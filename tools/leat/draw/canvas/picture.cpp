#include "tools/leat/draw/canvas/picture.h"

#include <libyuv.h>

#include <algorithm>
#include <cmath>

#include "shm/src/protocol/color.h"

namespace leat::tools::draw {
namespace {

std::uint8_t* bytes_of(Picture& p) { return reinterpret_cast<std::uint8_t*>(p.pixels.data()); }
const std::uint8_t* bytes_of(const Picture& p) { return reinterpret_cast<const std::uint8_t*>(p.pixels.data()); }
int row_of(const Picture& p) { return static_cast<int>(p.size.width * 4); }

const libyuv::YuvConstants* constants_of(shm::Color color) {
  const bool full = color.range == LEAT_COLOR_RANGE_full;
  switch (color.matrix) {
    case LEAT_COLOR_MATRIX_bt709:
      return full ? &libyuv::kYuvF709Constants : &libyuv::kYuvH709Constants;
    case LEAT_COLOR_MATRIX_bt2020:
      return full ? &libyuv::kYuvV2020Constants : &libyuv::kYuv2020Constants;
    default:
      return full ? &libyuv::kYuvJPEGConstants : &libyuv::kYuvI601Constants;
  }
}

constexpr Colour kNoPicture{38, 40, 46};
constexpr Size kNoPictureSize{640, 360};

}  // namespace

std::uint32_t blend(std::uint32_t under, Colour over, double share) noexcept {
  const Colour u = colour_of(under);
  const auto mix = [share](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * std::clamp(share, 0.0, 1.0)));
  };
  return pixel_of({mix(u.r, over.r), mix(u.g, over.g), mix(u.b, over.b)});
}

Picture picture_of(const leat_frame& frame) {
  Picture out({frame.width, frame.height}, kNoPicture);
  const int w = static_cast<int>(frame.width), h = static_cast<int>(frame.height), row = row_of(out);
  const auto stride = [&](int plane) { return static_cast<int>(frame.strides[plane]); };
  std::uint8_t* const to = bytes_of(out);
  if (w == 0 || h == 0 || frame.planes[0] == nullptr) return Picture(kNoPictureSize, kNoPicture);
  const libyuv::YuvConstants* const yuv = constants_of(
      shm::color_of(shm::color_from(frame.color_range, frame.color_matrix), {}, frame.format, frame.height));
  switch (frame.format) {
    case LEAT_FORMAT_nv12:
      libyuv::NV12ToARGBMatrix(frame.planes[0], stride(0), frame.planes[1], stride(1), to, row, yuv, w, h);
      break;
    case LEAT_FORMAT_i420:
      libyuv::I420ToARGBMatrix(frame.planes[0], stride(0), frame.planes[1], stride(1), frame.planes[2], stride(2), to,
                               row, yuv, w, h);
      break;
    case LEAT_FORMAT_rgb24:  // libyuv names formats by the word's most significant byte: its RAW is R, G, B in memory
      libyuv::RAWToARGB(frame.planes[0], stride(0), to, row, w, h);
      break;
    case LEAT_FORMAT_bgr24:
      libyuv::RGB24ToARGB(frame.planes[0], stride(0), to, row, w, h);
      break;
    case LEAT_FORMAT_gray8:
      libyuv::I400ToARGBMatrix(frame.planes[0], stride(0), to, row, yuv, w, h);
      break;
    default:
      return Picture(kNoPictureSize, kNoPicture);
  }
  return out;
}

Picture resized(const Picture& picture, Size to) {
  if (picture.size == to) return picture;
  Picture out(to);
  if (to.width == 0 || to.height == 0 || picture.pixels.empty()) return out;
  libyuv::ARGBScale(bytes_of(picture), row_of(picture), static_cast<int>(picture.size.width),
                    static_cast<int>(picture.size.height), bytes_of(out), row_of(out), static_cast<int>(to.width),
                    static_cast<int>(to.height), libyuv::kFilterBox);
  return out;
}

Picture letterboxed(const Picture& picture, Size to) {
  if (picture.size.width == 0 || picture.size.height == 0) return Picture(to);
  const std::uint64_t by_height = std::uint64_t{picture.size.width} * to.height / picture.size.height;
  const Size inner = by_height <= to.width
                         ? Size{static_cast<std::uint32_t>(by_height), to.height}
                         : Size{to.width, static_cast<std::uint32_t>(std::uint64_t{picture.size.height} * to.width /
                                                                     picture.size.width)};
  Picture out(to);
  paste(out, resized(picture, inner), (to.width - inner.width) / 2, (to.height - inner.height) / 2);
  return out;
}

void paste(Picture& on, const Picture& part, std::uint32_t x, std::uint32_t y) {
  if (x >= on.size.width || y >= on.size.height) return;
  const std::uint32_t width = std::min(part.size.width, on.size.width - x),
                      height = std::min(part.size.height, on.size.height - y);
  for (std::uint32_t row = 0; row < height; ++row)
    std::copy_n(&part.pixels[std::size_t{row} * part.size.width], width, &on.at(x, y + row));
}

void to_i420(const Picture& picture, const Planes& planes) {
  libyuv::ARGBToI420(bytes_of(picture), row_of(picture), planes.y, planes.y_stride, planes.u, planes.u_stride, planes.v,
                     planes.v_stride, static_cast<int>(picture.size.width & ~1U),
                     static_cast<int>(picture.size.height & ~1U));
}

}  // namespace leat::tools::draw
