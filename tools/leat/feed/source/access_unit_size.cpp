#include "tools/leat/feed/source/access_unit_size.h"

namespace leat::tools {
namespace {

constexpr std::uint8_t kStartOfImage = 0xd8, kStartOfScan = 0xda;

constexpr bool is_frame_header(std::uint8_t marker) {  // SOF0 to SOF15, but for the tables among them
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// Of the first frame header (ITU T.81, B.2.2: length, precision, lines, samples a line).
std::optional<PictureSize> size_of_jpeg(std::span<const std::uint8_t> jpeg) {
  const auto word = [&](std::size_t at) { return static_cast<std::uint32_t>(jpeg[at] << 8 | jpeg[at + 1]); };
  for (std::size_t at = 0; at + 4 <= jpeg.size();) {
    if (jpeg[at] != 0xff) return std::nullopt;
    const std::uint8_t marker = jpeg[at + 1];
    if (marker == 0xff || marker == kStartOfImage) {
      at += marker == 0xff ? 1 : 2;
      continue;
    }
    if (is_frame_header(marker))
      return at + 9 <= jpeg.size() ? std::optional(PictureSize{word(at + 7), word(at + 5)}) : std::nullopt;
    if (marker == kStartOfScan) return std::nullopt;
    at += 2 + word(at + 2);
  }
  return std::nullopt;
}

}  // namespace

AccessUnitSize::AccessUnitSize(const AVCodecParameters& parameters) {
  context_.reset(::avcodec_alloc_context3(nullptr));
  if (context_ == nullptr || ::avcodec_parameters_to_context(context_.get(), &parameters) < 0) return;
  parser_.reset(::av_parser_init(parameters.codec_id));
  if (parser_ != nullptr) parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
}

std::optional<PictureSize> AccessUnitSize::of(std::span<const std::uint8_t> unit) {
  if (context_ != nullptr && context_->codec_id == AV_CODEC_ID_MJPEG) return size_of_jpeg(unit);
  if (parser_ == nullptr) return std::nullopt;
  parser_->width = parser_->height = 0;
  std::uint8_t* out = nullptr;
  int bytes = 0;
  (void)::av_parser_parse2(parser_.get(), context_.get(), &out, &bytes, unit.data(), static_cast<int>(unit.size()),
                           AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
  if (parser_->width <= 0 || parser_->height <= 0) return std::nullopt;
  return PictureSize{static_cast<std::uint32_t>(parser_->width), static_cast<std::uint32_t>(parser_->height)};
}

}  // namespace leat::tools
