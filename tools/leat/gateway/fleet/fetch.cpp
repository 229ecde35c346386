#include "tools/leat/gateway/fleet/fetch.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "leat/leat.h"
#include "tools/base/text/fd.h"

namespace leat::gateway {
namespace {

constexpr std::size_t kMaxBytes = 64U << 20;

// Sends `request` and reads until the other end closes.
Result<std::string> exchange(Fd fd, const std::string& where, const std::string& request,
                             std::chrono::milliseconds limit) {
  const std::int64_t until = ::leat_now_ns() + limit.count() * 1'000'000;
  const auto wait = [&](short events) {
    pollfd poll{.fd = fd.get(), .events = events, .revents = 0};
    const std::int64_t left = (until - ::leat_now_ns()) / 1'000'000;
    return left > 0 && ::poll(&poll, 1, static_cast<int>(left)) == 1;
  };
  const Error late{where + " does not answer in time"};
  for (std::size_t sent = 0; sent < request.size();) {
    if (!wait(POLLOUT)) return late;
    const ssize_t bytes = ::send(fd.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) return Error{where + ": " + std::strerror(errno)};
    if (bytes > 0) sent += static_cast<std::size_t>(bytes);
  }
  std::string out;
  for (;;) {
    if (!wait(POLLIN)) return late;
    char block[16384];
    const ssize_t got = ::recv(fd.get(), block, sizeof block, MSG_DONTWAIT);
    if (got == 0) return out;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return Error{where + ": " + std::strerror(errno)};
    if (got > 0) out.append(block, static_cast<std::size_t>(got));
    if (out.size() > kMaxBytes) return Error{where + " says too much"};
  }
}

Result<Fd> connected(const sockaddr* to, socklen_t bytes, const std::string& where, std::chrono::milliseconds limit) {
  Fd fd(::socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = ::connect(fd.get(), to, bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd poll{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    if (::poll(&poll, 1, static_cast<int>(limit.count())) != 1) {
      error = ETIMEDOUT;
    } else {
      (void)getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) return Error{where + " cannot be reached: " + std::strerror(error)};
  return fd;
}

Result<std::string> body_of(std::string answer, const std::string& where) {
  const std::size_t end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 ") || end == std::string::npos) return Error{where + " speaks no HTTP/1.1"};
  if (answer.compare(9, 3, "401") == 0) return Error{where + " wants another token; name its file by --token-file"};
  if (answer.compare(9, 3, "200") != 0) return Error{where + " answers " + answer.substr(9, 3)};
  return answer.substr(end + 4);
}

}  // namespace

Result<std::string> get(const Address& from, const std::string& path, const std::string& token,
                        std::chrono::milliseconds limit) {
  sockaddr_storage to{};
  socklen_t bytes = 0;
  const std::string where = from.host.empty() ? from.path : from.host + ":" + std::to_string(from.port);
  if (from.host.empty()) {
    auto& un = reinterpret_cast<sockaddr_un&>(to);
    un.sun_family = AF_UNIX;
    std::strncpy(un.sun_path, from.path.c_str(), sizeof un.sun_path - 1);
    bytes = sizeof un;
  } else if (inet_pton(AF_INET, from.host.c_str(), &reinterpret_cast<sockaddr_in&>(to).sin_addr) == 1) {
    to.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(to).sin_port = htons(from.port);
    bytes = sizeof(sockaddr_in);
  } else {
    to.ss_family = AF_INET6;
    (void)inet_pton(AF_INET6, from.host.c_str(), &reinterpret_cast<sockaddr_in6&>(to).sin6_addr);
    reinterpret_cast<sockaddr_in6&>(to).sin6_port = htons(from.port);
    bytes = sizeof(sockaddr_in6);
  }
  auto fd = connected(reinterpret_cast<const sockaddr*>(&to), bytes, where, limit);
  if (!fd.ok()) return Error{fd.error()};
  const std::string bearer = token.empty() ? std::string() : "Authorization: Bearer " + token + "\r\n";
  auto answer = exchange(std::move(*fd), where,
                         "GET " + path + " HTTP/1.1\r\nHost: leat\r\n" + bearer + "Connection: close\r\n\r\n", limit);
  if (!answer.ok()) return answer;
  return body_of(std::move(*answer), where);
}

Result<std::string> ask_socket(const std::string& path, const std::string& line, std::chrono::milliseconds limit) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path.c_str(), sizeof to.sun_path - 1);
  auto fd = connected(reinterpret_cast<const sockaddr*>(&to), sizeof to, path, limit);
  if (!fd.ok()) return Error{fd.error()};
  return exchange(std::move(*fd), path, line + "\n", limit);
}

Samples samples_of(std::string_view text) {
  Samples out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t space = line.rfind(' ');
    if (line.starts_with('#') || space == std::string_view::npos) continue;
    out[std::string(line.substr(0, space))] = std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
  }
  return out;
}

double sum_of(const Samples& samples, std::string_view name) {
  double out = 0;
  for (auto it = samples.lower_bound(name); it != samples.end() && it->first.starts_with(name); ++it)
    if (it->first.size() == name.size() || it->first[name.size()] == '{') out += it->second;
  return out;
}

}  // namespace leat::gateway
