#include "tools/leat/feed/source/hardware_decoder.h"

extern "C" {
#include <libavutil/hwcontext.h>
}

#include "tools/leat/feed/source/av_text.h"

namespace leat::tools {
namespace {

// The device's format where the decoder offers it; what it cannot do (a profile of its own) it decodes itself.
AVPixelFormat choose(AVCodecContext* decoder, const AVPixelFormat* offered) {
  const auto wanted = static_cast<AVPixelFormat>(reinterpret_cast<std::intptr_t>(decoder->opaque));
  for (const AVPixelFormat* format = offered; *format != AV_PIX_FMT_NONE; ++format)
    if (*format == wanted) return wanted;
  return ::avcodec_default_get_format(decoder, offered);
}

Result<AVPixelFormat> use(AVCodecContext* decoder, const AVCodec* codec, AVHWDeviceType type) {
  for (int i = 0;; ++i) {
    const AVCodecHWConfig* const config = ::avcodec_get_hw_config(codec, i);
    if (config == nullptr) return Error{std::string("libavcodec here decodes no ") + codec->name + " with it"};
    if (config->device_type != type || (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) == 0) continue;
    AVBufferRef* device = nullptr;
    if (const int error = ::av_hwdevice_ctx_create(&device, type, nullptr, nullptr, 0); error < 0)
      return Error{"no such device can be opened: " + av_text(error)};
    decoder->hw_device_ctx = device;  // the decoder's from now on
    decoder->opaque = reinterpret_cast<void*>(static_cast<std::intptr_t>(config->pix_fmt));
    decoder->get_format = choose;
    return config->pix_fmt;
  }
}

}  // namespace

Result<AVPixelFormat> use_hardware(AVCodecContext* decoder, const AVCodec* codec, const std::string& which) {
  std::string why;
  for (const char* const name : {"vaapi", "cuda"}) {
    if (which != "auto" && which != name) continue;
    auto used = use(decoder, codec, ::av_hwdevice_find_type_by_name(name));
    if (used.ok()) return used;
    why += (why.empty() ? "" : "; ") + std::string(name) + ": " + used.error();
  }
  return Error{why};
}

Status to_memory(AVFrame* picture) {
  if (picture->hw_frames_ctx == nullptr) return Done{};
  AVFrame* const copy = ::av_frame_alloc();
  copy->format = AV_PIX_FMT_NV12;
  int error = ::av_hwframe_transfer_data(copy, picture, 0);
  if (error >= 0) error = ::av_frame_copy_props(copy, picture);
  if (error >= 0) {
    ::av_frame_unref(picture);
    ::av_frame_move_ref(picture, copy);
  }
  AVFrame* gone = copy;
  ::av_frame_free(&gone);
  return error < 0 ? Status(Error{"a picture cannot be fetched from its decoder: " + av_text(error)}) : Status(Done{});
}

}  // namespace leat::tools
