#include "engine/daemon/event_loop/event_loop.h"

#include "shm/src/protocol/kernel_features.h"

namespace leat::daemon {

Result<std::unique_ptr<EventLoop>> make_event_loop(EventLoopKind kind, std::string* note) {
  if (kind == EventLoopKind::epoll) {
    *note = "event loop: epoll, as configured";
    return make_epoll_loop();
  }
  if (!shm::can_refuse_descriptors()) {
    // io_uring holds on to what it watches for a moment after unwatch(), and so can be the one who closes it.
    if (kind == EventLoopKind::io_uring)
      return Error{
          "event_loop = \"io_uring\" needs a kernel whose sockets refuse descriptors (Linux 6.16); leave it out"};
    *note = "event loop: epoll, because this kernel's sockets cannot refuse descriptors (Linux 6.16 can)";
    return make_epoll_loop();
  }
  auto uring = make_uring_loop();
  if (uring.ok()) {
    *note = "event loop: io_uring";
    return uring;
  }
  if (kind == EventLoopKind::io_uring)
    return Error{uring.error() + "; set event_loop = \"auto\" to fall back to epoll"};
  *note = "event loop: epoll, because " + uring.error();
  return make_epoll_loop();
}

}  // namespace leat::daemon
