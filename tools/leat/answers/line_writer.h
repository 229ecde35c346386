// Lines to somebody who may read slowly, or not at all, without anybody waiting for him.
//
// push() takes a line in bounded memory; a thread of its own writes them, whole and in order. What does not fit is
// left out and counted; behind what was written when there is room again, `notice(count)` says so as a line of its own,
// so that a reader sees the gap where it is. A reader who is gone (EPIPE), or a disk that is full, loses lines as well.
// Thread rule: push() from any thread. Errors: open() says what is wrong in one line; later ones are counted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::tools {

struct LineWriterOptions {
  std::size_t max_bytes = std::size_t{8} << 20;  // that wait to be written
  std::function<std::string(std::uint64_t lost)> notice;
};

class LineWriter {
 public:
  struct Figures {
    std::uint64_t written = 0, lost = 0;  // lines
    std::string trouble;                  // why the last ones were lost, where writing failed; empty: it did not
  };

  // A file is appended to; "-" is standard output.
  static Result<std::unique_ptr<LineWriter>> open(const std::string& path, LineWriterOptions options);
  // Writes what waits, for as long as `patience_ns`, and a line that has begun to its end for a reader who still reads;
  // the rest is lost, and a notice says so, if he takes that within two seconds.
  ~LineWriter();
  // longer: asked each time that the patience is over and the reader took something meanwhile: is he waited for as long
  // again? Empty: no.
  void finish(std::int64_t patience_ns, const std::function<bool()>& longer = {});
  void push(std::string line);  // without its newline
  [[nodiscard]] Figures figures() const;
  // He closed his end, which a writer finds out when it writes. Any thread.
  [[nodiscard]] bool reader_gone() const noexcept { return reader_gone_.load(std::memory_order_relaxed); }

 private:
  struct Line {
    std::string text;
    std::uint64_t tells_of;  // lines that were lost: a notice; 0: a line of its own
  };
  LineWriter(Fd file, Fd wake, bool paced, LineWriterOptions options);
  void run();
  [[nodiscard]] std::string write_out(const std::string& text, bool urgent = false);  // why not; empty: done
  [[nodiscard]] std::uint64_t taken() const;                                          // bytes, by its reader
  [[nodiscard]] bool may_write(bool begun) const;  // waits until a piece is taken at once; false: given up

  Fd file_, give_up_;
  const bool paced_;  // not a regular file: its reader decides how long a write takes
  const LineWriterOptions options_;
  bool torn_ = false;     // the thread's: the last line stands there without its end
  bool gave_up_ = false;  // the thread's: a line was lost at the end, and what follows would stand behind a gap
  std::atomic<bool> reader_gone_{false};         // relaxed: nothing is published with it
  std::atomic<std::uint64_t> written_bytes_{0};  // relaxed: is there progress?
  mutable std::mutex mutex_;                     // guards what follows
  std::condition_variable more_, done_;
  std::deque<Line> lines_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t unsaid_ = 0;  // lost, and not yet told by a notice
  Figures figures_;
  bool ending_ = false, ended_ = false;
  std::thread thread_;
};

}  // namespace leat::tools
