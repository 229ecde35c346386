// Waiting for many descriptors: io_uring where the kernel allows it, epoll otherwise (containers often forbid
// io_uring), behind one interface with one behaviour: level-triggered, one token a descriptor. The conformance test
// runs on both. Thread rule: one thread per loop. It allocates when a descriptor is added, never in wait(). Idle
// waiting makes no wake-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/daemon/configuration/config.h"
#include "leat/result.hpp"

namespace leat::daemon {

struct Readiness {
  std::uint64_t token = 0;
  bool readable = false;
  bool writable = false;
  bool hung_up = false;  // or in error; reading may still give what was sent before
};

class EventLoop {
 public:
  virtual ~EventLoop() = default;
  // Reports `fd` when readable or hung up; with `writable` also when it can be written. Calling it again changes the
  // token or the interest. The caller keeps `fd` open until unwatch().
  virtual Status watch(int fd, std::uint64_t token, bool writable = false) = 0;
  virtual void unwatch(int fd) = 0;  // a descriptor that is not watched is ignored
  // Blocks until something is ready or timeout_ns is over (< 0: for ever, 0: looks only). Returns how many were written
  // to `out`; 0 when time is up or a signal came.
  virtual std::size_t wait(std::int64_t timeout_ns, std::span<Readiness> out) = 0;
  virtual std::string_view name() const = 0;  // "io_uring" or "epoll"
};

Result<std::unique_ptr<EventLoop>> make_epoll_loop();
Result<std::unique_ptr<EventLoop>> make_uring_loop();  // an error when the kernel refuses (EPERM, ENOSYS, ENOMEM, ...)

// automatic: io_uring, else epoll. *note: one line that says which was taken and why.
Result<std::unique_ptr<EventLoop>> make_event_loop(EventLoopKind kind, std::string* note);

}  // namespace leat::daemon
