// A video file that pictures are written into, one after the other. Thread rule: one thread at a time. Errors: one
// line.
#pragma once

#include <cstdint>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/draw/canvas/picture.h"

struct AVCodecContext;
struct AVFormatContext;
struct AVFrame;
struct AVPacket;
struct AVStream;

namespace leat::tools {

class VideoFile {
 public:
  VideoFile() = default;
  ~VideoFile();
  VideoFile(const VideoFile&) = delete;
  VideoFile& operator=(const VideoFile&) = delete;
  // Whether a container has the path's ending.
  [[nodiscard]] static bool takes(const std::string& path);
  // The container is chosen by the path's ending (.mp4, .mkv); H.264 where libavcodec has an encoder for it, else
  // MPEG-4. rate: pictures per second, the unit of write()'s times; 0: 30.
  Status open(const std::string& path, draw::Size size, double rate);
  // `time` grows from call to call. A picture of another size is scaled into the middle, dark beside it.
  Status write(std::uint64_t time, const draw::Picture& picture);
  Status finish();

 private:
  int send(const AVFrame* picture);  // nullptr: the end

  std::string path_;
  draw::Size size_;
  AVFormatContext* output_ = nullptr;
  AVCodecContext* encoder_ = nullptr;
  AVStream* stream_ = nullptr;
  AVFrame* picture_ = nullptr;
  AVPacket* packet_ = nullptr;
  int error_ = 0;  // the first one
};

}  // namespace leat::tools
