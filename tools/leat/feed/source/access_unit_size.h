// The size of the pictures that access units are, read without decoding them: what the parser of the codec finds in
// parameter sets and frame headers, and a JPEG's frame header. One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace leat::tools {

struct PictureSize {
  std::uint32_t width = 0, height = 0;
  bool operator==(const PictureSize&) const = default;
};

class AccessUnitSize {
 public:
  // parameters: of the stream; copied. Where libavcodec has no parser for the codec, no unit has a known size.
  explicit AccessUnitSize(const AVCodecParameters& parameters);
  // The size as it is to be shown, from this unit on; none: it does not say. The bytes behind the unit are read: at
  // least AV_INPUT_BUFFER_PADDING_SIZE of them.
  [[nodiscard]] std::optional<PictureSize> of(std::span<const std::uint8_t> unit);

 private:
  struct Free {
    void operator()(AVCodecContext* context) const { ::avcodec_free_context(&context); }
    void operator()(AVCodecParserContext* parser) const { ::av_parser_close(parser); }
  };
  std::unique_ptr<AVCodecContext, Free> context_;
  std::unique_ptr<AVCodecParserContext, Free> parser_;
};

}  // namespace leat::tools
