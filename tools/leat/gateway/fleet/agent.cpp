#include "tools/leat/gateway/fleet/agent.h"

#include <sys/socket.h>

#include <algorithm>
#include <cmath>

#include "tools/base/text/fd.h"

namespace leat::gateway {
namespace {

constexpr double kNew = 0.5;        // of a new look, in what is told
constexpr double kFullShare = 0.2;  // of a node that is full
constexpr int kStep = 5;            // points that it must move before it is told

}  // namespace

void AgentShare::saw(double slack, double speed) noexcept {
  smooth_ = smooth_ ? *smooth_ * (1 - kNew) + slack * kNew : slack;
  const double share = 100 * speed * (kFullShare + (1 - kFullShare) * std::clamp(*smooth_, 0.0, 1.0));
  const int now = std::clamp(static_cast<int>(std::lround(share)), 1, 100);
  if (std::abs(now - percent_) >= kStep || now == 100) percent_ = now;
}

Status Agent::listen(const Address& address) {
  auto fd = listening_socket(address);
  if (!fd.ok()) return Error{fd.error()};
  fd_.assign(fd->release());
  wait();
  return Done{};
}

void Agent::wait() {
  fd_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    for (int i = 0; i < 16; ++i) {
      const Fd peer(::accept4(fd_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer) break;
      const std::string line = line_() + "\n";
      (void)::send(peer.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    wait();
  });
}

}  // namespace leat::gateway
