#include "cuda/decode/test_streams.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include "leat/frame_format.h"

namespace leat::test {
namespace {

struct Freed {
  void operator()(AVFrame* f) const { ::av_frame_free(&f); }
  void operator()(AVPacket* p) const { ::av_packet_free(&p); }
  void operator()(AVCodecContext* c) const { ::avcodec_free_context(&c); }
  void operator()(SwsContext* s) const { ::sws_freeContext(s); }
};
using Context = std::unique_ptr<AVCodecContext, Freed>;
using Picture = std::unique_ptr<AVFrame, Freed>;

Context encoder_for(const StreamSpec& spec) {
  const AVCodec* codec = nullptr;
  if (spec.codec == LEAT_CODEC_h264) codec = ::avcodec_find_encoder_by_name("libx264");
  if (spec.codec == LEAT_CODEC_hevc) codec = ::avcodec_find_encoder_by_name("libx265");
  if (spec.codec == LEAT_CODEC_av1) codec = ::avcodec_find_encoder_by_name("libaom-av1");
  if (spec.codec == LEAT_CODEC_jpeg) codec = ::avcodec_find_encoder(AV_CODEC_ID_MJPEG);
  if (codec == nullptr) return nullptr;
  Context out(::avcodec_alloc_context3(codec));
  const bool jpeg = spec.codec == LEAT_CODEC_jpeg;
  out->width = static_cast<int>(spec.width), out->height = static_cast<int>(spec.height);
  out->pix_fmt = jpeg ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P;
  out->time_base = {1, 25};
  out->gop_size = spec.keys_every;
  if (spec.full_range) out->color_range = AVCOL_RANGE_JPEG;
  out->colorspace = static_cast<AVColorSpace>(spec.matrix);
  out->max_b_frames = spec.reordered;
  out->thread_count = 1;
  if (jpeg) {
    out->flags |= AV_CODEC_FLAG_QSCALE;
    out->global_quality = 2 * FF_QP2LAMBDA;
  } else {
    (void)::av_opt_set(out->priv_data, "preset", "veryfast", 0);
    (void)::av_opt_set(out->priv_data, "crf", "28", 0);
    (void)::av_opt_set(out->priv_data, "x264-params", "scenecut=0:open-gop=0", 0);
    (void)::av_opt_set(out->priv_data, "x265-params", "log-level=none:scenecut=0:open-gop=0:pools=none:frame-threads=1",
                       0);
    (void)::av_opt_set(out->priv_data, "usage", "realtime", 0);
    (void)::av_opt_set(out->priv_data, "cpu-used", "8", 0);
    (void)::av_opt_set(out->priv_data, "lag-in-frames", "0", 0);
  }
  return ::avcodec_open2(out.get(), codec, nullptr) < 0 ? nullptr : std::move(out);
}

std::uint8_t pixel_of(const StreamSpec& spec, int picture, std::uint32_t x, std::uint32_t y) {
  const std::uint32_t left = (spec.seed * 37 + static_cast<std::uint32_t>(picture) * 3) % spec.width,
                      top = spec.seed * 11 % spec.height;
  const bool inside = x >= left && x < left + spec.width / 5 && y >= top && y < top + spec.height / 4;
  return static_cast<std::uint8_t>(inside ? 220 : 40 + (x + y * 2 + static_cast<std::uint32_t>(picture)) % 128);
}

void paint(const StreamSpec& spec, int picture, AVFrame& frame) {
  const auto p = static_cast<std::size_t>(picture);
  const bool given = p < spec.show.size();
  std::size_t at = 0;
  for (int plane = 0; plane < 3; ++plane) {
    const std::uint32_t width = plane == 0 ? spec.width : spec.width / 2,
                        height = plane == 0 ? spec.height : spec.height / 2;
    for (std::uint32_t y = 0; y < height; ++y)
      for (std::uint32_t x = 0; x < width; ++x)
        frame.data[plane][static_cast<std::ptrdiff_t>(y) * frame.linesize[plane] + x] =
            given        ? spec.show[p][at++]
            : plane == 0 ? pixel_of(spec, picture, x, y)
                         : static_cast<std::uint8_t>(96 + (x + spec.seed) % 64);
  }
}

std::vector<std::uint8_t> tight(const AVFrame& f) {
  std::vector<std::uint8_t> out;
  for (int plane = 0; plane < 3; ++plane) {
    const int width = plane == 0 ? f.width : f.width / 2, height = plane == 0 ? f.height : f.height / 2;
    for (int y = 0; y < height; ++y)
      out.insert(out.end(), f.data[plane] + std::ptrdiff_t{y} * f.linesize[plane],
                 f.data[plane] + std::ptrdiff_t{y} * f.linesize[plane] + width);
  }
  return out;
}

std::vector<std::uint8_t> as_rgb(const AVFrame& f) {
  const std::unique_ptr<SwsContext, Freed> scaler(
      ::sws_getContext(f.width, f.height, static_cast<AVPixelFormat>(f.format), f.width, f.height, AV_PIX_FMT_RGB24,
                       SWS_BILINEAR | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(f.width) * static_cast<std::size_t>(f.height) * 3);
  std::uint8_t* const to[] = {out.data()};
  const int stride[] = {f.width * 3};
  (void)::sws_scale(scaler.get(), f.data, f.linesize, 0, f.height, to, stride);
  return out;
}

// The pictures, by the access unit that each came in.
void decode(const StreamSpec& spec, AVCodecID id, CodedStream& out) {
  Context decoder(::avcodec_alloc_context3(::avcodec_find_decoder(id)));
  decoder->thread_count = 1;
  if (::avcodec_open2(decoder.get(), decoder->codec, nullptr) < 0) return;
  out.i420.resize(out.units.size());
  const Picture frame(::av_frame_alloc());
  const auto take = [&] {
    while (::avcodec_receive_frame(decoder.get(), frame.get()) >= 0)
      out.i420[static_cast<std::size_t>(frame->pts)] = spec.codec == LEAT_CODEC_jpeg ? as_rgb(*frame) : tight(*frame);
  };
  const std::unique_ptr<AVPacket, Freed> packet(::av_packet_alloc());
  for (std::size_t i = 0; i < out.units.size(); ++i) {
    (void)::av_new_packet(packet.get(), static_cast<int>(out.units[i].size()));
    std::copy(out.units[i].begin(), out.units[i].end(), packet->data);
    packet->pts = static_cast<std::int64_t>(i);
    (void)::avcodec_send_packet(decoder.get(), packet.get());
    ::av_packet_unref(packet.get());
    take();
  }
  (void)::avcodec_send_packet(decoder.get(), nullptr);
  take();
}

}  // namespace

CodedStream coded_stream(const StreamSpec& spec) {
  ::av_log_set_level(AV_LOG_QUIET);
  CodedStream out{.width = spec.width, .height = spec.height, .units = {}, .i420 = {}, .key = {}};
  const Context encoder = encoder_for(spec);
  if (encoder == nullptr) return out;
  const std::unique_ptr<AVPacket, Freed> packet(::av_packet_alloc());
  const auto take = [&] {
    while (::avcodec_receive_packet(encoder.get(), packet.get()) >= 0) {
      out.units.emplace_back(packet->data, packet->data + packet->size);
      out.key.push_back((packet->flags & AV_PKT_FLAG_KEY) != 0);
      ::av_packet_unref(packet.get());
    }
  };
  const Picture frame(::av_frame_alloc());
  frame->format = encoder->pix_fmt;
  frame->width = encoder->width, frame->height = encoder->height;
  frame->quality = encoder->global_quality;
  for (int i = 0; i < spec.pictures; ++i) {
    ::av_frame_unref(frame.get());
    frame->format = encoder->pix_fmt;
    frame->width = encoder->width, frame->height = encoder->height;
    frame->quality = encoder->global_quality;
    if (::av_frame_get_buffer(frame.get(), 0) < 0) return out;
    paint(spec, i, *frame);
    frame->pts = i;
    (void)::avcodec_send_frame(encoder.get(), frame.get());
    take();
  }
  (void)::avcodec_send_frame(encoder.get(), nullptr);
  take();
  decode(spec, encoder->codec_id, out);
  return out;
}

std::vector<std::uint8_t> shown_again(unsigned slot) {
  // A temporal delimiter, and a frame header of one byte: show_existing_frame, three bits of the slot, the end's bit.
  return {0x12, 0x00, 0x1a, 0x01, static_cast<std::uint8_t>(0x88U | slot << 4U)};
}

std::vector<std::uint8_t> damaged(const std::vector<std::uint8_t>& unit, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> out = unit;
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % std::max<std::size_t>(1, n); };
  const std::size_t flips = 1 + below(8);
  for (std::size_t i = 0; i < flips && !out.empty(); ++i)
    out[below(out.size())] ^= static_cast<std::uint8_t>(1 + below(255));
  if (below(3) == 0) out.resize(1 + below(out.size()));
  if (below(4) == 0) {
    const std::size_t at = below(out.size());
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(at),
              out.begin() + static_cast<std::ptrdiff_t>(std::min(out.size(), at + 1 + below(64))));
  }
  if (out.empty()) out.push_back(0);
  return out;
}

}  // namespace leat::test

#if defined(__SANITIZE_ADDRESS__)
// The encoder of HEVC keeps copies of its parameters when it is closed.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libx265\n"; }
#endif
