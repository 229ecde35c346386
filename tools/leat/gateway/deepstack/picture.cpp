#include "tools/leat/gateway/deepstack/picture.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tools/leat/gateway/deepstack/file_end.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

namespace leat::gateway {
namespace {

struct Freed {
  void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
  void operator()(AVFrame* f) const { av_frame_free(&f); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(SwsContext* s) const { sws_freeContext(s); }
};

AVCodecID codec_of(std::span<const std::byte> file) {
  constexpr unsigned char kJpeg[] = {0xff, 0xd8, 0xff}, kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (file.size() > sizeof kJpeg && std::memcmp(file.data(), kJpeg, sizeof kJpeg) == 0) return AV_CODEC_ID_MJPEG;
  if (file.size() > sizeof kPng && std::memcmp(file.data(), kPng, sizeof kPng) == 0) return AV_CODEC_ID_PNG;
  return AV_CODEC_ID_NONE;
}

// Sizes of the planes of i420.
std::uint32_t half(std::uint32_t side) { return (side + 1) / 2; }

Status convert(const AVFrame& from, DecodedPicture& to) {
  const int width = from.width, height = from.height;
  to.width = static_cast<std::uint32_t>(width);
  to.height = static_cast<std::uint32_t>(height);
  to.pixels.resize(std::size_t{to.width} * to.height + 2 * std::size_t{half(to.width)} * half(to.height) + 64);
  const std::unique_ptr<SwsContext, Freed> scaler(sws_getContext(width, height, static_cast<AVPixelFormat>(from.format),
                                                                 width, height, AV_PIX_FMT_YUV420P, SWS_BILINEAR,
                                                                 nullptr, nullptr, nullptr));
  if (!scaler) return Error{"the picture's pixels are of a kind that is not taken"};
  const tools::StoredPicture stored = to.stored();
  std::uint8_t* planes[] = {const_cast<std::uint8_t*>(stored.planes[0]), const_cast<std::uint8_t*>(stored.planes[1]),
                            const_cast<std::uint8_t*>(stored.planes[2]), nullptr};
  const int strides[] = {stored.strides[0], stored.strides[1], stored.strides[2], 0};
  sws_scale(scaler.get(), from.data, from.linesize, 0, height, planes, strides);
  return Done{};
}

}  // namespace

tools::StoredPicture DecodedPicture::stored() const noexcept {
  const std::uint8_t* const y = pixels.data();
  const std::uint8_t* const u = y + std::size_t{width} * height;
  const std::uint8_t* const v = u + std::size_t{half(width)} * half(height);
  const auto w = static_cast<int>(width), h = static_cast<int>(height);
  return {.planes = {y, u, v},
          .strides = {w, static_cast<int>(half(width)), static_cast<int>(half(width))},
          .width = w,
          .height = h};
}

Result<DecodedPicture> decode_picture(std::span<const std::byte> file) {
  const AVCodecID id = codec_of(file);
  if (id == AV_CODEC_ID_NONE) return Error{"the picture is neither JPEG nor PNG"};
  if (!(id == AV_CODEC_ID_PNG ? png_has_its_end(file) : jpeg_has_its_end(file)))
    return Error{"the picture is cut short: its file ends before its data does; send the whole file"};
  const Error broken{"the picture cannot be decoded: its data is damaged; send it again"};
  av_log_set_level(AV_LOG_FATAL);  // what strangers send is answered, and fills no log
  const AVCodec* const codec = avcodec_find_decoder(id);
  const std::unique_ptr<AVCodecContext, Freed> decoder(avcodec_alloc_context3(codec));
  const std::unique_ptr<AVFrame, Freed> frame(av_frame_alloc());
  const std::unique_ptr<AVPacket, Freed> packet(av_packet_alloc());
  if (!decoder || !frame || !packet || av_new_packet(packet.get(), static_cast<int>(file.size())) < 0) return broken;
  std::memcpy(packet->data, file.data(), file.size());  // its padding is zeroed
  decoder->thread_count = 1;
  decoder->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK;  // otherwise what is missing is filled with grey
  decoder->max_pixels = std::int64_t{kMaxPictureSide} * kMaxPictureSide;
  if (avcodec_open2(decoder.get(), codec, nullptr) < 0 || avcodec_send_packet(decoder.get(), packet.get()) < 0)
    return broken;
  (void)avcodec_send_packet(decoder.get(), nullptr);
  if (avcodec_receive_frame(decoder.get(), frame.get()) < 0 || frame->decode_error_flags != 0 ||
      (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0)
    return broken;
  const int longest = std::max(frame->width, frame->height), shortest = std::min(frame->width, frame->height);
  if (shortest < 2 || longest > static_cast<int>(kMaxPictureSide))
    return Error{"a picture has sides of 2 to " + std::to_string(kMaxPictureSide) + " pixels"};
  DecodedPicture out;
  if (const AVFrameSideData* const matrix = av_frame_get_side_data(frame.get(), AV_FRAME_DATA_DISPLAYMATRIX);
      matrix != nullptr && matrix->size >= 9 * sizeof(std::int32_t)) {
    std::int32_t values[9];
    std::memcpy(values, matrix->data, sizeof values);
    out.turn = tools::turn_of(values);
  }
  if (auto status = convert(*frame, out); !status) return Error{status.error()};
  return out;
}

}  // namespace leat::gateway
