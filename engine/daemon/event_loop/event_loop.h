// Waiting for many descriptors, by epoll: level-triggered, one token a descriptor. Thread rule: one thread per loop.
// Idle waiting makes no wake-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::daemon {

struct Readiness {
  std::uint64_t token = 0;
  bool readable = false;
  bool writable = false;
  bool hung_up = false;  // or in error; reading may still give what was sent before
};

class EventLoop {
 public:
  static Result<EventLoop> create();
  // Reports `fd` when readable or hung up; with `writable` also when it can be written. Calling it again changes the
  // token or the interest. The caller keeps `fd` open until unwatch().
  Status watch(int fd, std::uint64_t token, bool writable = false);
  void unwatch(int fd);  // a descriptor that is not watched is ignored
  // Blocks until something is ready or timeout_ns is over (< 0: for ever, 0: looks only). Returns how many were written
  // to `out`; 0 when time is up or a signal came.
  std::size_t wait(std::int64_t timeout_ns, std::span<Readiness> out);

 private:
  explicit EventLoop(Fd epoll) noexcept : epoll_(std::move(epoll)) {}
  Fd epoll_;
};

}  // namespace leat::daemon
