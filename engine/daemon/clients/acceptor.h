// The acceptor of the control socket: takes connections, and keeps calm where it cannot. With no descriptor left it
// spends the one it keeps for that to tell the client so; when even that fails, or connections come faster than anybody
// honest opens them, it closes for a moment, and those who wait go on waiting.
//
// Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/metrics/metrics.h"
#include "shm/src/protocol/limiters.h"
#include "shm/src/protocol/listener.h"

namespace leat::daemon {

class Acceptor {
 public:
  Acceptor(shm::Listener& listener, EventLoop& loop, Metrics& metrics, std::uint64_t token);
  Status open();  // watches the listener

  // The listener is readable: hands over a bounded number of connections, as long as the taker says that he takes more.
  // `turn_away` is for those that were told why they are not taken: to close a connection can take long.
  void on_ready(std::int64_t now_ns, const std::function<bool(shm::Fd)>& accept,
                const std::function<void(shm::Fd)>& turn_away);
  [[nodiscard]] std::int64_t next_due() const noexcept { return closed_until_ns_; }  // INT64_MAX: it is open
  void advance(std::int64_t now_ns);
  void retire(const std::function<void(shm::Fd)>& let_go);  // for good; who waits to be accepted is let go of with it

 private:
  void no_descriptor(std::int64_t now_ns, const std::function<void(shm::Fd)>& turn_away);
  void log(const std::string& text, std::int64_t now_ns);
  void close_for(std::int64_t ns, std::int64_t now_ns);

  shm::Listener& listener_;
  EventLoop& loop_;
  Metrics& metrics_;
  std::uint64_t token_;
  shm::Fd spare_;
  shm::TokenBucket rate_{2000, 500};
  shm::LogLimit log_limit_;
  std::int64_t closed_until_ns_ = INT64_MAX;
  std::int64_t back_off_ns_ = 0;
};

}  // namespace leat::daemon
