#include "engine/daemon/clients/acceptor.h"

#include <fcntl.h>

#include <algorithm>

#include "engine/daemon/log.h"
#include "shm/src/protocol/control_protocol.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kConnectionsPerTurn = 8;
constexpr std::int64_t kFirstBackOffNs = 10'000'000, kLongestBackOffNs = 1'000'000'000;

shm::Fd spare_descriptor() { return shm::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Acceptor::Acceptor(shm::Listener& listener, EventLoop& loop, Metrics& metrics, std::uint64_t token)
    : listener_(listener), loop_(loop), metrics_(metrics), token_(token), spare_(spare_descriptor()) {}

Status Acceptor::open() {
  closed_until_ns_ = INT64_MAX;
  return loop_.watch(listener_.fd(), token_);
}

void Acceptor::on_ready(std::int64_t now_ns, const std::function<bool(shm::Fd)>& accept,
                        const std::function<void(shm::Fd)>& turn_away) {
  for (std::uint32_t i = 0; i < kConnectionsPerTurn; ++i) {
    if (!rate_.take(now_ns)) return close_for(rate_.ready_ns(kConnectionsPerTurn) - now_ns, now_ns);
    shm::Fd connection;
    std::string text;
    switch (listener_.accept(&connection, &text)) {
      case shm::Accepted::connection:
        back_off_ns_ = 0;
        if (!accept(std::move(connection))) return close_for(kFirstBackOffNs, now_ns);
        continue;
      case shm::Accepted::nobody:
        return;
      case shm::Accepted::no_descriptor:
        return no_descriptor(now_ns, turn_away);
      case shm::Accepted::failed:
        log(text, now_ns);
        return close_for(kLongestBackOffNs, now_ns);
    }
  }
}

void Acceptor::no_descriptor(std::int64_t now_ns, const std::function<void(shm::Fd)>& turn_away) {
  constexpr const char* kText =
      "leatd has no file descriptor left for another connection; raise its limit (ulimit -n, LimitNOFILE)";
  log(kText, now_ns);
  metrics_.daemon().add(shm::DaemonCounter::clients_refused);
  if (spare_) {
    spare_ = shm::Fd();
    shm::Fd connection;
    std::string text;
    if (listener_.accept(&connection, &text) == shm::Accepted::connection) {
      (void)shm::refuse(connection.get(), 0, LEAT_ERROR_no_room, kText);
      turn_away(std::move(connection));
    }
  }
  back_off_ns_ = std::clamp(back_off_ns_ * 2, kFirstBackOffNs, kLongestBackOffNs);
  close_for(back_off_ns_, now_ns);
}

void Acceptor::log(const std::string& text, std::int64_t now_ns) {
  log_caused(LogLevel::error, text, log_limit_, now_ns);
}

void Acceptor::close_for(std::int64_t ns, std::int64_t now_ns) {
  loop_.unwatch(listener_.fd());
  closed_until_ns_ = now_ns + ns;
  metrics_.daemon().add(shm::DaemonCounter::accept_pauses);
}

void Acceptor::retire(const std::function<void(shm::Fd)>& let_go) {
  loop_.unwatch(listener_.fd());
  let_go(listener_.retire());
}

void Acceptor::advance(std::int64_t now_ns) {
  if (now_ns < closed_until_ns_) return;
  if (!spare_) spare_ = spare_descriptor();
  if (!open()) closed_until_ns_ = now_ns + kLongestBackOffNs;
}

}  // namespace leat::daemon
