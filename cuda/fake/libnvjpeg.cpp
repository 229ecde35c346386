// A stand-in for nvJPEG that decodes with libavcodec: whether it can is said at once, and the file is read, and its
// pixels come, when the stream comes to it.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>
}

#include "cuda/decode/nvjpeg_api.h"

#define LEAT_EXPORT extern "C" __attribute__((visibility("default")))

namespace leat::fake {
namespace {

using namespace cuda::nvjpeg;

struct Freed {
  void operator()(AVFrame* f) const { ::av_frame_free(&f); }
  void operator()(AVPacket* p) const { ::av_packet_free(&p); }
  void operator()(AVCodecContext* c) const { ::avcodec_free_context(&c); }
  void operator()(SwsContext* s) const { ::sws_freeContext(s); }
};
int on_stream(cuda::Stream stream, void (*function)(void*), void* argument) {
  static const auto kLaunch = reinterpret_cast<int (*)(cuda::Stream, void (*)(void*), void*)>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchHostFunc"));
  return kLaunch(stream, function, argument);
}

// The frame header's segment, SOF0 to SOF15 but for tables and arithmetic's.
bool size_of(const unsigned char* data, std::size_t bytes, int* width, int* height, int* components) {
  for (std::size_t at = 2; at + 9 < bytes && data[at] == 0xff;) {
    const unsigned marker = data[at + 1];
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      *height = data[at + 5] << 8 | data[at + 6];
      *width = data[at + 7] << 8 | data[at + 8];
      *components = data[at + 9];
      return *width > 0 && *height > 0;
    }
    at += 2 + (std::size_t{data[at + 2]} << 8 | data[at + 3]);
  }
  return false;
}

std::unique_ptr<AVFrame, Freed> decoded(const unsigned char* data, std::size_t bytes) {
  const AVCodec* const codec = ::avcodec_find_decoder(AV_CODEC_ID_MJPEG);
  const std::unique_ptr<AVCodecContext, Freed> context(::avcodec_alloc_context3(codec));
  context->thread_count = 1;
  context->err_recognition = AV_EF_EXPLODE;
  const std::unique_ptr<AVPacket, Freed> packet(::av_packet_alloc());
  std::unique_ptr<AVFrame, Freed> frame(::av_frame_alloc());
  if (::avcodec_open2(context.get(), codec, nullptr) < 0 || ::av_new_packet(packet.get(), static_cast<int>(bytes)) < 0)
    return nullptr;
  std::memcpy(packet->data, data, bytes);
  if (::avcodec_send_packet(context.get(), packet.get()) < 0 || ::avcodec_receive_frame(context.get(), frame.get()) < 0)
    return nullptr;
  return frame;
}

struct Job {
  const unsigned char* data;
  std::size_t bytes;
  int width, height;
  unsigned char* to;
  std::size_t pitch;
};
void put(void* argument) {
  const std::unique_ptr<Job> job(static_cast<Job*>(argument));
  const auto frame = decoded(job->data, job->bytes);
  if (frame == nullptr || frame->width != job->width || frame->height != job->height) return;  // another file by now
  const std::unique_ptr<SwsContext, Freed> scaler(
      ::sws_getContext(job->width, job->height, static_cast<AVPixelFormat>(frame->format), job->width, job->height,
                       AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
  if (scaler == nullptr) return;
  const std::size_t row_bytes = static_cast<std::size_t>(job->width) * 3;
  std::vector<std::uint8_t> pixels(row_bytes * static_cast<std::size_t>(job->height));
  std::uint8_t* const to[] = {pixels.data()};
  const int stride[] = {static_cast<int>(row_bytes)};
  (void)::sws_scale(scaler.get(), frame->data, frame->linesize, 0, job->height, to, stride);
  for (std::size_t y = 0; y < static_cast<std::size_t>(job->height); ++y)
    std::memcpy(job->to + y * job->pitch, pixels.data() + y * row_bytes, row_bytes);
}

char handle_tag, state_tag;

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::cuda::nvjpeg;

LEAT_EXPORT Status nvjpegCreateSimple(Handle* handle) {
  ::av_log_set_level(AV_LOG_QUIET);
  *handle = &handle_tag;
  return kDone;
}
LEAT_EXPORT Status nvjpegDestroy(Handle) { return kDone; }
LEAT_EXPORT Status nvjpegJpegStateCreate(Handle, State* state) {
  *state = &state_tag;
  return kDone;
}
LEAT_EXPORT Status nvjpegJpegStateDestroy(State) { return kDone; }
LEAT_EXPORT Status nvjpegGetImageInfo(Handle, const unsigned char* data, std::size_t bytes, int* components,
                                      int* subsampling, int* widths, int* heights) {
  *subsampling = -1;
  return size_of(data, bytes, &widths[0], &heights[0], components) ? kDone : kBadJpeg;
}
LEAT_EXPORT Status nvjpegDecode(Handle, State, const unsigned char* data, std::size_t bytes, int format, Image* image,
                                leat::cuda::Stream stream) {
  if (format != kInterleavedRgb) return kJpegNotSupported;
  const auto frame = decoded(data, bytes);
  int width = 0, height = 0, components = 0;
  if (frame == nullptr || !size_of(data, bytes, &width, &height, &components) || frame->width != width ||
      frame->height != height)
    return kBadJpeg;
  auto job = std::make_unique<Job>(Job{data, bytes, width, height, image->channel[0], image->pitch[0]});
  return on_stream(stream, put, job.release()) == 0 ? kDone : kExecutionFailed;
}
