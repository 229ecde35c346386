// libav's hardware decoders: VA-API and CUDA (NVDEC), where libavcodec was built with them and a device is there.
// Thread rule: one thread for each decoder. Errors: one line that says why it is not to be had.
#pragma once

#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "leat/result.hpp"

namespace leat::tools {

// Has `decoder`, which is not open yet, decode on a device: "vaapi", "cuda", or "auto" for the first of them that is
// there. The format of the pictures it makes then, which lie on the device (to_memory); they come as NV12.
Result<AVPixelFormat> use_hardware(AVCodecContext* decoder, const AVCodec* codec, const std::string& which);

// Fetches a picture from its device into memory, in its place. Anything but a picture on a device stays as it is.
Status to_memory(AVFrame* picture);

}  // namespace leat::tools
