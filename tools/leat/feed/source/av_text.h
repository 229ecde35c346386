// What FFmpeg says an error is.
#pragma once

extern "C" {
#include <libavutil/error.h>
}

#include <string>

namespace leat::tools {

inline std::string av_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

}  // namespace leat::tools
