// What leatd tells whoever started it as a service: ready, what it is doing, stopping.
//
// systemd's notification protocol (sd_notify(3), which calls it stable and free for all to speak): lines as one
// datagram to the socket that NOTIFY_SOCKET names. Without one nothing is told. Never waits, and never fails: a service
// manager that does not listen is no reason not to serve. Thread rule: one thread. Errors: none.
//
// And what it passes: with socket activation (sd_listen_fds(3)) the manager holds leatd's socket, so that clients wait
// at it while one leatd gives way to another.
#pragma once

#include <string>
#include <string_view>

#include "shm/src/segments/segment.h"

namespace leat::daemon {

class ServiceManager {
 public:
  // Takes NOTIFY_SOCKET out of the environment, so that workers do not speak for leatd.
  static ServiceManager from_environment();

  void ready(std::string_view status) { tell("READY=1", status); }
  void status(std::string_view status) { tell("", status); }
  void stopping(std::string_view status) { tell("STOPPING=1", status); }

 private:
  void tell(std::string_view state, std::string_view status);

  shm::Fd socket_;  // empty: nobody to tell
  std::string address_;
};

// The first socket that the manager passes to this process, or none. Takes LISTEN_FDS and its like out of the
// environment, so that workers do not take it for theirs.
Fd passed_socket();

}  // namespace leat::daemon
