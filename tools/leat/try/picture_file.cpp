#include "tools/leat/try/picture_file.h"

#include <algorithm>
#include <fstream>
#include <memory>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>
}

namespace leat::tools {
namespace {

bool ends_with(const std::string& path, std::string_view ending) {
  if (path.size() < ending.size()) return false;
  return std::equal(ending.begin(), ending.end(), path.end() - static_cast<std::ptrdiff_t>(ending.size()),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}
bool is_jpeg(const std::string& path) { return ends_with(path, ".jpg") || ends_with(path, ".jpeg"); }

struct Freed {
  void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
  void operator()(AVFrame* f) const { av_frame_free(&f); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(SwsContext* s) const { sws_freeContext(s); }
};

}  // namespace

bool is_picture_path(const std::string& path) { return ends_with(path, ".png") || is_jpeg(path); }

Status write_picture(const std::string& path, const draw::Picture& drawing) {
  const bool jpeg = is_jpeg(path);
  const AVCodec* codec = avcodec_find_encoder(jpeg ? AV_CODEC_ID_MJPEG : AV_CODEC_ID_PNG);
  if (codec == nullptr) return Error{path + ": libavcodec has no encoder for it; install its full build"};
  const int width = static_cast<int>(drawing.size.width), height = static_cast<int>(drawing.size.height);
  const AVPixelFormat format = jpeg ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_RGB24;
  const std::unique_ptr<AVCodecContext, Freed> encoder(avcodec_alloc_context3(codec));
  const std::unique_ptr<AVFrame, Freed> picture(av_frame_alloc());
  const std::unique_ptr<AVPacket, Freed> packet(av_packet_alloc());
  const std::unique_ptr<SwsContext, Freed> scaler(
      sws_getContext(width, height, AV_PIX_FMT_BGR0, width, height, format, SWS_BILINEAR, nullptr, nullptr, nullptr));
  encoder->width = picture->width = width;
  encoder->height = picture->height = height;
  encoder->pix_fmt = format;
  picture->format = format;
  encoder->time_base = {1, 1};
  const std::uint8_t* planes[] = {reinterpret_cast<const std::uint8_t*>(drawing.pixels.data())};
  const int strides[] = {width * 4};
  if (!scaler || av_frame_get_buffer(picture.get(), 0) < 0 || avcodec_open2(encoder.get(), codec, nullptr) < 0)
    return Error{path + ": the picture's encoder does not start"};
  sws_scale(scaler.get(), planes, strides, 0, height, picture->data, picture->linesize);
  if (avcodec_send_frame(encoder.get(), picture.get()) < 0 || avcodec_send_frame(encoder.get(), nullptr) < 0 ||
      avcodec_receive_packet(encoder.get(), packet.get()) < 0)
    return Error{path + ": the picture cannot be encoded"};
  std::ofstream file(path, std::ios::binary);
  if (!file.write(reinterpret_cast<const char*>(packet->data), packet->size).flush())
    return Error{path + " cannot be written; name a writable place with room"};
  return Done{};
}

}  // namespace leat::tools
