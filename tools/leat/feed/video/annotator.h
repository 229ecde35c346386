// Draws what was answered on the pictures and writes them into a video file, on a thread of its own that gives way to
// others, behind a bounded queue: where the machine is too busy, pictures are left out of the video (and counted),
// never held up in the feeder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/feed/video/shot.h"

namespace leat::tools {

class Annotator {
 public:
  // One stream, stream 0, on sheets of that size, at most `max_rate` pictures a second of capture; 0: every one.
  // add() from one thread. path, rate: VideoFile's.
  static Result<std::unique_ptr<Annotator>> open(const std::string& path, draw::Size sheet, double rate,
                                                 double max_rate = 0);
  // The newest picture of each of so many streams, side by side, some pictures a second. add() from any thread, a
  // stream's from one.
  static Result<std::unique_ptr<Annotator>> open_grid(const std::string& path, std::uint32_t streams);
  virtual ~Annotator() = default;
  // Whether this picture would be drawn: only then it need be copied. One that finds no room is counted as left out.
  [[nodiscard]] virtual bool wants(std::uint32_t stream, std::int64_t capture_ns) = 0;
  // `index` numbers the stream's submitted pictures; answers may come out of order by a few. After wants() said so.
  virtual void add(std::uint32_t stream, std::uint64_t index, Shot shot) = 0;
  // Ends the file. The number of pictures left out.
  virtual Result<std::uint64_t> finish() = 0;
};

inline constexpr double kMaxAnnotated = 30;  // pictures a second of a stream that keeps its own time

}  // namespace leat::tools
