// What a worker prints, on its way to leatd's own standard error. Workers do not get that descriptor: it may be a
// terminal, a log file or the journal's socket, which they could close for leatd, cut off, or fill until leatd waits.
// A socket carries what they print to here; a worker that prints much waits for us and not we for it, and what goes
// on to leatd's log is limited, so that no frame fills a disk. Every line gets the time in front, as leatd's own
// (log.h). Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/daemon/metrics/slow_calls.h"
#include "leat/result.hpp"
#include "shm/src/protocol/limiters.h"
#include "tools/base/text/fd.h"

namespace leat::daemon {

class WorkerOutput {
 public:
  WorkerOutput() noexcept;
  Result<Fd> open();                             // the worker's end: its standard output and standard error
  int fd() const noexcept { return fd_.get(); }  // readable when it has printed; < 0: not open
  // Passes on what is there, as far as its allowance goes, and leaves out the rest. False: look again only at
  // next_ns(). `calls`: those on the worker's socket, whose time it decides.
  [[nodiscard]] bool pass_on(std::int64_t now_ns, TimedCalls& calls);
  void close(std::int64_t now_ns, TimedCalls& calls);                       // the last of it
  [[nodiscard]] std::int64_t next_ns() const noexcept { return next_ns_; }  // INT64_MAX: when fd() is readable

 private:
  void print(const char* text, std::size_t bytes, std::int64_t now_ns);
  [[nodiscard]] std::string with_starts(std::string_view text, const std::string& start) const;
  Fd fd_;
  shm::TokenBucket allowance_;  // bytes
  std::uint64_t left_out_ = 0;
  bool line_begins_ = true;  // with what it prints next
  std::int64_t next_ns_ = INT64_MAX;
};

}  // namespace leat::daemon
