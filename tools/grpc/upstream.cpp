#include "tools/grpc/upstream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace leat::grpc_door {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kKept = 64;  // connections between two requests
constexpr int kLookMs = 50;        // between two looks whether anybody still waits
constexpr std::size_t kReadBytes = 64 * 1024;

struct Failure {
  std::string why;
  bool unanswered;  // nothing of an answer came: another connection may be tried
};

using Wait = std::function<void(int fd, short events)>;

std::string head_of(const HttpRequest& request) {
  std::size_t bytes = 0;
  for (const std::string_view piece : request.body) bytes += piece.size();
  std::string out = request.method + " " + request.path + " HTTP/1.1\r\nHost: leat\r\n";
  for (const auto& [name, value] : request.fields) out += name + ": " + value + "\r\n";
  if (bytes != 0 || request.method == "POST") out += "Content-Length: " + std::to_string(bytes) + "\r\n";
  return out + "\r\n";
}

void send_all(int fd, const HttpRequest& request, const Wait& wait) {
  const std::string head = head_of(request);
  std::vector<iovec> parts;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) parts.push_back({const_cast<char*>(text.data()), text.size()});  // sendmsg only reads it
  };
  add(head);
  for (const std::string_view piece : request.body) add(piece);
  for (std::size_t first = 0; first < parts.size();) {
    msghdr message{};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = std::min<std::size_t>(parts.size() - first, 64);
    const ssize_t sent = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait(fd, POLLOUT);
      continue;
    }
    // Refused before its end was sent: what it says is to be read, and says why.
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET) && first != 0) return;
    if (sent < 0 && errno != EINTR) throw Failure{std::strerror(errno), true};
    for (auto left = static_cast<std::size_t>(std::max<ssize_t>(sent, 0)); left > 0;) {
      const std::size_t part = std::min(left, parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + part;
      parts[first].iov_len -= part;
      left -= part;
      if (parts[first].iov_len == 0) ++first;
    }
  }
}

// The answer, and whether its connection may be kept.
std::pair<HttpAnswer, bool> read_answer(int fd, std::uint64_t max_bytes, const Wait& wait) {
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(max_bytes);
  boost::system::error_code error;
  std::string had;
  std::array<char, kReadBytes> block;
  bool any = false;
  while (!parser.is_done()) {
    const ssize_t got = ::recv(fd, block.data(), block.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait(fd, POLLIN);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Failure{std::strerror(errno), !any};
    if (got == 0) throw Failure{"it closed the connection", !any};
    any = true;
    had.append(block.data(), static_cast<std::size_t>(got));
    while (!had.empty() && !parser.is_done()) {
      const std::size_t used = parser.put(boost::asio::buffer(had), error);
      had.erase(0, used);
      if (error == http::error::need_more) break;
      if (error) throw Failure{"its answer cannot be read: " + error.message(), false};
      if (used == 0) break;
    }
  }
  auto message = parser.release();
  HttpAnswer out;
  out.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    out.fields.emplace_back(std::move(name), std::string(field.value()));
  }
  out.body = std::move(message.body());
  return {std::move(out), message.keep_alive() && had.empty()};
}

}  // namespace

struct Upstream::State {
  std::string address;
  sockaddr_storage to{};
  socklen_t to_bytes = 0;
  std::uint64_t max_answer_bytes = 0;
  std::mutex mutex;
  std::vector<Fd> kept;

  Fd take() {
    const std::lock_guard lock(mutex);
    if (kept.empty()) return Fd();
    Fd out = std::move(kept.back());
    kept.pop_back();
    return out;
  }
  void keep(Fd fd) {
    const std::lock_guard lock(mutex);
    if (kept.size() < kKept) kept.push_back(std::move(fd));
  }
  Fd connected() const {
    Fd fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), to_bytes) != 0)
      throw Failure{std::strerror(errno), false};
    const int on = 1;
    (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
};

std::string_view HttpAnswer::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return {};
}

Upstream::Upstream(std::unique_ptr<State> state) : state_(std::move(state)) {}
Upstream::Upstream(Upstream&&) noexcept = default;
Upstream::~Upstream() = default;

Result<Upstream> Upstream::at(const std::string& address, std::uint64_t max_answer_bytes) {
  const std::size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? std::string() : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (host.empty() || ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
    return Error{"'" + address + "' is no address of a gateway; write 127.0.0.1:8000 or [::1]:8000"};
  auto state = std::make_unique<State>();
  state->address = address;
  state->max_answer_bytes = max_answer_bytes;
  std::memcpy(&state->to, found->ai_addr, found->ai_addrlen);
  state->to_bytes = found->ai_addrlen;
  ::freeaddrinfo(found);
  return Upstream(std::move(state));
}

Result<HttpAnswer> Upstream::exchange(const HttpRequest& request, Clock::time_point until,
                                      const std::function<bool()>& given_up) {
  const Wait wait = [&](int fd, short events) {
    for (;;) {
      if (given_up()) throw Failure{"nobody waits for its answer", false};
      if (Clock::now() >= until) throw Failure{"it does not answer in time", false};
      pollfd poll{.fd = fd, .events = events, .revents = 0};
      if (::poll(&poll, 1, kLookMs) > 0) return;
    }
  };
  Fd fd = state_->take();
  for (;;) {
    const bool was_kept = static_cast<bool>(fd);
    try {
      if (!was_kept) fd = state_->connected();
      send_all(fd.get(), request, wait);
      auto [answer, reusable] = read_answer(fd.get(), state_->max_answer_bytes, wait);
      if (reusable) state_->keep(std::move(fd));
      return std::move(answer);
    } catch (const Failure& failure) {
      fd = Fd();
      if (was_kept && failure.unanswered) continue;
      return Error{"the gateway at " + state_->address + ": " + failure.why};
    }
  }
}

}  // namespace leat::grpc_door
