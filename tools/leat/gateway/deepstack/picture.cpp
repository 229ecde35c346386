#include "tools/leat/gateway/deepstack/picture.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

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

// Of the planes of i420.
std::uint32_t half(std::uint32_t side) { return (side + 1) / 2; }

tools::StoredPicture planes_of(const DecodedPicture& p) {
  const std::uint8_t* const y = p.pixels.data();
  const std::uint8_t* const u = y + std::size_t{p.width} * p.height;
  const std::uint8_t* const v = u + std::size_t{half(p.width)} * half(p.height);
  const auto w = static_cast<int>(p.width), h = static_cast<int>(p.height), chroma = static_cast<int>(half(p.width));
  return {.planes = {y, u, v}, .strides = {w, chroma, chroma}, .width = w, .height = h};
}

// Copies the planes, of grey with chroma that is none.
void keep_planes(const AVFrame& from, DecodedPicture& to) {
  const std::size_t luma = std::size_t{to.width} * to.height, chroma = std::size_t{half(to.width)} * half(to.height);
  to.format = LEAT_FORMAT_i420;
  to.pixels.resize(luma + 2 * chroma, 128);
  std::uint8_t* const planes[] = {to.pixels.data(), to.pixels.data() + luma, to.pixels.data() + luma + chroma};
  const int count = from.format == AV_PIX_FMT_GRAY8 ? 1 : 3;
  for (int p = 0; p < count; ++p) {
    const auto w = static_cast<int>(p == 0 ? to.width : half(to.width));
    av_image_copy_plane(planes[p], w, from.data[p], from.linesize[p], w,
                        static_cast<int>(p == 0 ? to.height : half(to.height)));
  }
}

// Pixel by pixel, each from where it stands in the stored picture. Here, since the gateway's thread has no time for it.
void turn_rgb(DecodedPicture& picture) {
  const std::size_t w = picture.width, h = picture.height;
  const tools::Turn turn = std::exchange(picture.turn, {});
  if (turn.swaps_sides()) std::swap(picture.width, picture.height);
  std::vector<std::uint8_t> turned(3 * w * h);
  std::uint8_t* to = turned.data();
  for (std::size_t y = 0; y < picture.height; ++y)
    for (std::size_t x = 0; x < picture.width; ++x, to += 3) {
      std::size_t u = x, v = y;  // undo the turn, then the mirroring
      if (turn.clockwise_degrees == 90) u = y, v = h - 1 - x;
      if (turn.clockwise_degrees == 180) u = w - 1 - x, v = h - 1 - y;
      if (turn.clockwise_degrees == 270) u = w - 1 - y, v = x;
      if (turn.mirrored) u = w - 1 - u;
      std::memcpy(to, picture.pixels.data() + 3 * (v * w + u), 3);
    }
  picture.pixels = std::move(turned);
}

// Chroma is interpolated, as libjpeg does it; values of JPEG are full and BT.601.
Status to_rgb(const AVFrame& from, DecodedPicture& to) {
  constexpr int kFlags = SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_ACCURATE_RND, kOne = 1 << 16;
  to.format = LEAT_FORMAT_rgb24;
  to.pixels.resize(3 * std::size_t{to.width} * to.height + 64);
  const std::unique_ptr<SwsContext, Freed> scaler(
      sws_getContext(from.width, from.height, static_cast<AVPixelFormat>(from.format), from.width, from.height,
                     AV_PIX_FMT_RGB24, kFlags, nullptr, nullptr, nullptr));
  if (!scaler) return Error{"the picture's pixels are of a kind that is not taken; send JPEG or PNG of RGB"};
  const int* const matrix = sws_getCoefficients(SWS_CS_ITU601);
  (void)sws_setColorspaceDetails(scaler.get(), matrix, 1, matrix, 1, 0, kOne, kOne);
  std::uint8_t* planes[] = {to.pixels.data(), nullptr, nullptr, nullptr};
  const int strides[] = {3 * from.width, 0, 0, 0};
  sws_scale(scaler.get(), from.data, from.linesize, 0, from.height, planes, strides);
  if (!to.turn.nothing()) turn_rgb(to);
  return Done{};
}

// 16 bits of grey to the nearest of 8, which swscale cuts off instead.
void keep_deep_grey(const AVFrame& from, DecodedPicture& to) {
  to.format = LEAT_FORMAT_i420;
  const std::size_t luma = std::size_t{to.width} * to.height, chroma = std::size_t{half(to.width)} * half(to.height);
  to.pixels.resize(luma + 2 * chroma, 128);
  for (std::size_t y = 0; y < to.height; ++y) {
    const std::uint8_t* const row = from.data[0] + static_cast<std::ptrdiff_t>(y) * from.linesize[0];
    for (std::size_t x = 0; x < to.width; ++x)
      to.pixels[y * to.width + x] = static_cast<std::uint8_t>(((row[2 * x] << 8 | row[2 * x + 1]) + 128) / 257);
  }
}

Status convert(const AVFrame& from, DecodedPicture& to) {
  to.width = static_cast<std::uint32_t>(from.width);
  to.height = static_cast<std::uint32_t>(from.height);
  if (from.format == AV_PIX_FMT_GRAY16BE) {
    keep_deep_grey(from, to);
    return Done{};
  }
  if (from.format != AV_PIX_FMT_YUVJ420P && from.format != AV_PIX_FMT_GRAY8) return to_rgb(from, to);
  keep_planes(from, to);
  return Done{};
}

}  // namespace

void DecodedPicture::write(const leat_frame& slot) const {
  if (format == LEAT_FORMAT_i420) return tools::Upright(turn).write(planes_of(*this), slot);
  const std::size_t row = 3 * std::size_t{width};
  for (std::size_t y = 0; y < height; ++y)
    std::memcpy(slot.planes[0] + y * slot.strides[0], pixels.data() + y * row, row);
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
  decoder->idct_algo = FF_IDCT_INT;                           // libjpeg's own, as Pillow and OpenCV have it
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
