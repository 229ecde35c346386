// What the two annotators share: a video file, and a thread that draws into it and gives way to decoders and workers,
// who have work that waits.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tools/leat/feed/video/annotator.h"
#include "tools/leat/feed/video/video_file.h"

namespace leat::tools {

class DrawingAnnotator : public Annotator {
 protected:
  // Opens the file and begins to draw. Every destructor of a derived class stops it.
  Status begin(const std::string& path, draw::Size size, double rate);
  void stop();                                                    // what waits is drawn first
  Status end_file();                                              // stops; the first error, also of the file's end
  virtual void draw_all() = 0;                                    // the thread, until ended_
  void write(std::uint64_t index, const draw::Picture& picture);  // from draw_all()

  std::mutex mutex_;  // guards what follows, and what a derived class says
  std::condition_variable wake_;
  bool ended_ = false;

 private:
  VideoFile file_;           // the thread's until it has ended, like written_
  Status written_ = Done{};  // the first error
  std::thread thread_;
};

}  // namespace leat::tools
