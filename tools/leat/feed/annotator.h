// Writes annotated pictures into a video file. Encoding runs on a thread of its own behind a bounded queue: where the
// machine is too busy, pictures are left out of the video (and counted), never held up in the feeder.
// Thread rule: add() from one thread.
#pragma once

#include <memory>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/feed/drawing.h"

namespace leat::tools {

class Annotator {
 public:
  // The container is chosen by the path's ending (.mp4, .mkv); H.264 where libavcodec has an encoder for it, else
  // MPEG-4.
  static Result<std::unique_ptr<Annotator>> open(const std::string& path, std::uint32_t width, std::uint32_t height,
                                                 double rate);
  virtual ~Annotator() = default;
  // `index` numbers the submitted pictures; answers may come out of order by a few.
  virtual void add(std::uint64_t index, Canvas canvas) = 0;
  // Ends the file. The number of pictures left out.
  virtual Result<std::uint64_t> finish() = 0;
};

// What one answer shows: boxes with labels, or why there are none.
void draw_answer(Canvas& canvas, const leat_answer& answer);

}  // namespace leat::tools
