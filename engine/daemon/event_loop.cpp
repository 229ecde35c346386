#include "engine/daemon/event_loop.h"

namespace leat::daemon {

Result<std::unique_ptr<EventLoop>> make_event_loop(EventLoopKind kind, std::string* note) {
  if (kind == EventLoopKind::epoll) {
    *note = "event loop: epoll, as configured";
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
