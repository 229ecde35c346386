#include "tools/leat/gateway/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <tuple>

#include "leat/leat.h"
#include "tools/base/text/fd.h"

namespace leat::gateway {
namespace {

constexpr auto kLook = std::chrono::milliseconds(25);
constexpr int kBacklog = 512;
constexpr int kAcceptAtOnce = 64;
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24) == 127;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

// False: the text is no address.
bool numeric(const std::string& host, std::uint16_t port, sockaddr_storage* out, socklen_t* bytes) {
  *out = {};
  auto& four = reinterpret_cast<sockaddr_in&>(*out);
  if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    *bytes = sizeof four;
    return true;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(*out);
  if (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return false;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  *bytes = sizeof six;
  return true;
}

Peer peer_of(int fd, const sockaddr_storage& address, bool by_unix) {
  if (by_unix) {
    ucred who{};
    socklen_t bytes = sizeof who;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
    return {.who = "uid " + std::to_string(who.uid), .local = true, .by_unix = true, .uid = who.uid};
  }
  char text[INET6_ADDRSTRLEN] = "?";
  const void* const at = address.ss_family == AF_INET
                             ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                             : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  (void)inet_ntop(address.ss_family, at, text, sizeof text);
  return {.who = text, .local = is_loopback(address)};
}

Error cannot(const std::string& where) {
  return Error{"cannot listen at " + where + ": " + std::strerror(errno) + "; name a free address"};
}

}  // namespace

Result<Address> address_of(const std::string& text) {
  const Error wrong{"'" + text + "' is no address; write 127.0.0.1:8000, [::1]:8000 or unix:/run/leat/gateway.sock"};
  if (text.starts_with("unix:")) {
    if (text.size() < 6 || text.size() - 5 >= sizeof(sockaddr_un{}.sun_path)) return wrong;
    return Address{.host = {}, .port = 0, .path = text.substr(5)};
  }
  const std::size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  Address out{.host = host, .port = 0, .path = {}};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  sockaddr_storage address{};
  socklen_t bytes = 0;
  if (error != std::errc() || end != port.data() + port.size() || port.empty() ||
      !numeric(host, out.port, &address, &bytes))
    return wrong;
  out.local = is_loopback(address);
  return out;
}

Server::Server(boost::asio::io_context& io, Service& service, HttpLimits limits, HeldBytes& held)
    : io_(io),
      limits_(limits),
      shared_{service, limits_, held, counts_, draining_, [this](Connection& c) { ended(c); }},
      timer_(io) {
  look();
}

Server::~Server() {
  for (auto& [raw, kept] : std::exchange(connections_, {})) kept->close();
  for (const Listener& l : listeners_)
    if (!l.path.empty()) (void)::unlink(l.path.c_str());
}

Result<Fd> listening_socket(const Address& address) {
  const bool by_unix = address.host.empty();
  const std::string where = by_unix ? address.path : address.host + ":" + std::to_string(address.port);
  sockaddr_storage to{};
  socklen_t bytes = sizeof(sockaddr_un);
  if (by_unix) {
    auto& un = reinterpret_cast<sockaddr_un&>(to);
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, address.path.c_str(), address.path.size() + 1);
  } else if (!numeric(address.host, address.port, &to, &bytes)) {
    return Error{where + " is no address"};
  }
  Fd fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return cannot(where);
  const int on = 1;
  if (!by_unix) (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (by_unix) {  // one that nobody listens at is left over
    const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&to), bytes) != 0 && errno == ECONNREFUSED)
      (void)::unlink(address.path.c_str());
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&to), bytes) != 0) return cannot(where);
  if (by_unix && ::chmod(address.path.c_str(), 0660) != 0) return cannot(where);
  if (::listen(fd.get(), kBacklog) != 0) return cannot(where);
  return fd;
}

Status Server::listen(const Address& address) {
  auto fd = listening_socket(address);
  if (!fd.ok()) return Error{fd.error()};
  const bool by_unix = address.host.empty();
  if (!by_unix) {
    sockaddr_storage to{};
    socklen_t bytes = sizeof to;
    (void)getsockname(fd->get(), reinterpret_cast<sockaddr*>(&to), &bytes);
    port_ = ntohs(to.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(to).sin_port
                                          : reinterpret_cast<const sockaddr_in6&>(to).sin6_port);
  }
  listeners_.push_back({boost::asio::posix::stream_descriptor(io_, fd->release()), by_unix, address.path});
  wait(listeners_.back());
  return Done{};
}

void Server::wait(Listener& listener) {
  listener.fd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, &listener](const boost::system::error_code& error) {
                           if (error) return;
                           accept(listener);
                           wait(listener);
                         });
}

void Server::accept(Listener& listener) {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    Fd fd(::accept4(listener.fd.native_handle(), reinterpret_cast<sockaddr*>(&from), &bytes,
                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    Peer peer = peer_of(fd.get(), from, listener.by_unix);
    const int on = 1;
    if (!listener.by_unix) (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    admit(std::move(fd), std::move(peer), true);
  }
}

// Who was answered gives way only to a newcomer who has waited a turn: replies that are due then are sent by that time,
// and their connections end or give way themselves.
void Server::admit(Fd fd, Peer peer, bool may_wait) {
  if (full_for(peer)) {
    Connection* const longest = longest_waited_for(peer);
    if (may_wait && (longest == nullptr || longest->used())) {
      boost::asio::post(io_, [this, fd = std::move(fd), peer = std::move(peer)]() mutable {
        admit(std::move(fd), std::move(peer), false);
      });
      return;
    }
    if (longest == nullptr) {
      ++counts_.refused;
      (void)::send(fd.get(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    ++counts_.evicted;
    longest->close();
  }
  ++counts_.accepted;
  ++of_peer_[peer.who];
  auto connection = std::make_shared<Connection>(io_, fd.release(), std::move(peer), shared_);
  connections_[connection.get()] = connection;
  connection->start();
}

bool Server::full_for(const Peer& peer) const {
  return has_all_his(peer) || connections_.size() >= limits_.connections;
}

bool Server::has_all_his(const Peer& peer) const {
  const auto count = of_peer_.find(peer.who);
  return count != of_peer_.end() && count->second >= limits_.connections_each;
}

// Of those whose next step is their peer's: first who has never been answered, and among equals who has been waited for
// longest. A peer with all his places gives way to himself.
Connection* Server::longest_waited_for(const Peer& newcomer) const {
  const bool his = has_all_his(newcomer);
  Connection* longest = nullptr;
  for (const auto& [raw, kept] : connections_) {
    if (!raw->waits_for_peer() || (his && raw->peer().who != newcomer.who)) continue;
    const auto rank = [](const Connection& c) { return std::tuple(c.used(), c.since_ns()); };
    if (longest == nullptr || rank(*raw) < rank(*longest)) longest = raw;
  }
  return longest;
}

void Server::ended(Connection& connection) {
  const auto count = of_peer_.find(connection.peer().who);
  if (count != of_peer_.end() && --count->second == 0) of_peer_.erase(count);
  const auto kept = connections_.find(&connection);
  if (kept == connections_.end()) return;
  boost::asio::post(io_, [last = kept->second] {});  // it may be in the middle of something
  connections_.erase(kept);
}

void Server::look() {
  const std::int64_t now = ::leat_now_ns();
  std::vector<std::shared_ptr<Connection>> all;  // looking may end some
  all.reserve(connections_.size());
  for (const auto& [raw, kept] : connections_) all.push_back(kept);
  for (const auto& c : all) c->look(now);
  timer_.expires_after(kLook);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

void Server::close_idle() {
  std::vector<std::shared_ptr<Connection>> idle;
  for (const auto& [raw, kept] : connections_)
    if (raw->idle()) idle.push_back(kept);
  for (const auto& c : idle) c->close();
}

std::size_t Server::busy() const noexcept {
  std::size_t out = 0;
  for (const auto& [raw, kept] : connections_) out += raw->busy();
  return out;
}

}  // namespace leat::gateway
