#include "tools/leat/feed/source/coding.h"

#include <fcntl.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>

#include "shm/src/protocol/color_text.h"
#include "tools/base/text/fd.h"

namespace leat::tools {
namespace {

std::uint8_t matrix_of_v4l2(std::uint32_t encoding) {
  switch (encoding) {
    case V4L2_YCBCR_ENC_601:
    case V4L2_YCBCR_ENC_XV601:
      return LEAT_COLOR_MATRIX_bt601;
    case V4L2_YCBCR_ENC_709:
    case V4L2_YCBCR_ENC_XV709:
    case V4L2_YCBCR_ENC_SMPTE240M:  // within .001 of BT.709
      return LEAT_COLOR_MATRIX_bt709;
    case V4L2_YCBCR_ENC_BT2020:
    case V4L2_YCBCR_ENC_BT2020_CONST_LUM:
      return LEAT_COLOR_MATRIX_bt2020;
    default:
      return LEAT_COLOR_MATRIX_unspecified;
  }
}

// Who states what is stated.
const char* who(Coding::From from) {
  switch (from) {
    case Coding::From::jpeg:
      return "JPEG";
    case Coding::From::image:
      return "as images are";
    case Coding::From::device:
      return "as the device states";
    case Coding::From::options:
      return "as the options state";
    default:
      return "as stated";
  }
}

}  // namespace

Coding overridden(Coding coding, shm::Color said) {
  if (coding.family == Coding::Family::rgb || said == shm::Color{}) return coding;
  coding.color = shm::color_or(said, coding.color);
  coding.from = Coding::From::options;
  return coding;
}

std::string text_of(const Coding& coding, std::uint32_t lines) {
  if (coding.family == Coding::Family::rgb) return "RGB";
  const std::uint32_t format = coding.family == Coding::Family::gray ? LEAT_FORMAT_gray8 : LEAT_FORMAT_i420;
  std::string text = shm::color_text(shm::color_of(coding.color, {}, format, lines),
                                     coding.color.range != LEAT_COLOR_RANGE_unspecified,
                                     coding.color.matrix != LEAT_COLOR_MATRIX_unspecified, format, lines);
  constexpr std::string_view kStated = "as stated";
  if (const std::size_t at = text.find(kStated); at != text.npos) text.replace(at, kStated.size(), who(coding.from));
  return text;
}

shm::Color color_of_v4l2(std::uint32_t colorspace, std::uint32_t ycbcr_enc, std::uint32_t quantization) {
  if (colorspace == V4L2_COLORSPACE_DEFAULT && ycbcr_enc == V4L2_YCBCR_ENC_DEFAULT &&
      quantization == V4L2_QUANTIZATION_DEFAULT)
    return {};
  shm::Color color;
  if (ycbcr_enc == V4L2_YCBCR_ENC_DEFAULT && colorspace != V4L2_COLORSPACE_DEFAULT)
    ycbcr_enc = V4L2_MAP_YCBCR_ENC_DEFAULT(colorspace);
  color.matrix = matrix_of_v4l2(ycbcr_enc);
  if (quantization == V4L2_QUANTIZATION_DEFAULT)
    quantization = V4L2_MAP_QUANTIZATION_DEFAULT(false, colorspace, ycbcr_enc);
  color.range = quantization == V4L2_QUANTIZATION_FULL_RANGE ? LEAT_COLOR_RANGE_full : LEAT_COLOR_RANGE_limited;
  return color;
}

shm::Color color_of_device(const std::string& path) {
  const Fd device(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  v4l2_format format{};
  format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  if (!device || ::ioctl(device.get(), VIDIOC_G_FMT, &format) != 0) return {};
  const v4l2_pix_format& pixels = format.fmt.pix;
  const bool extended = pixels.priv == V4L2_PIX_FMT_PRIV_MAGIC;  // else the two fields after it are not there
  return color_of_v4l2(pixels.colorspace, extended ? pixels.ycbcr_enc : std::uint32_t{V4L2_YCBCR_ENC_DEFAULT},
                       extended ? pixels.quantization : std::uint32_t{V4L2_QUANTIZATION_DEFAULT});
}

}  // namespace leat::tools
