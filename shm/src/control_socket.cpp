// The transport of the control protocol: packets and descriptors over one Unix socket, and who is at its other end.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "shm/src/protocol.h"

namespace leat::shm {

namespace {

constexpr std::size_t kMaxFds = 4;

std::string system_text(const std::string& what, int error) { return what + ": " + std::strerror(error); }

std::int64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{"socket path '" + path + "' is empty or longer than " + std::to_string(sizeof address.sun_path - 1) + " bytes; choose a shorter one"};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> make_socket(int extra) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | extra, 0));
  if (!fd) return Error{system_text("cannot create a socket", errno)};
  return fd;
}

void collect(msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Got receive(int socket, bool blocking, std::vector<std::byte>* packet, std::vector<Fd>* fds, std::string* text) {
  packet->resize(kMaxMessage);
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  iovec piece{packet->data(), packet->size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (fds != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  ssize_t n;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (blocking ? 0 : MSG_DONTWAIT));
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    packet->clear();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Got::nothing;
    if (errno == ECONNRESET) return Got::closed;
    *text = system_text("cannot receive a control message", errno);
    return Got::broken;
  }
  packet->resize(static_cast<std::size_t>(n));
  if (fds != nullptr) collect(message, *fds);
  if (n == 0) return Got::closed;  // SEQPACKET: an empty packet is not sent by anybody honest either
  if (message.msg_flags & MSG_TRUNC) {
    *text = "control message longer than any may be";
    return Got::broken;
  }
  return Got::message;
}

Status send_bytes(int socket, std::vector<std::byte> packet, std::span<const int> fds) {
  if (packet.size() > kMaxMessage || fds.size() > kMaxFds) return Error{"control message too long to send"};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec piece{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t n;
  do n = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0) return Error{system_text("cannot send a control message", errno)};
  return Done{};
}

Status refuse(int socket, std::uint32_t request, leat_error error, std::string_view text) {
  Refused m;
  m.header.request = request;
  m.error = static_cast<std::uint32_t>(error);
  set_text(m.text, text);
  return send(socket, m);
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return Error{system_text("cannot tell who connected (SO_PEERCRED)", errno)};
  return Peer{credentials.pid, credentials.uid, credentials.gid};
}

namespace {

// A killed leatd's listening socket may outlive it for a moment: the kernel ends its io_uring, which holds the socket, after
// the process. Whoever is really there keeps the connection; a dead one's is reset, and the next attempt is refused.
bool somebody_serves(const std::string& path) {
  constexpr int kPatienceMs = 250, kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    leat_error error = LEAT_ERROR_ok;
    const Result<Fd> fd = connect_to(path, &error);
    if (!fd) return false;
    pollfd p{fd->get(), POLLIN, 0};
    const int ready = ::poll(&p, 1, kPatienceMs);
    if (ready == 0 || (ready > 0 && (p.revents & (POLLHUP | POLLERR)) == 0)) return true;
  }
  return true;
}

}  // namespace

Result<Fd> listen_at(const std::string& path, mode_t mode) {
  Result<sockaddr_un> address = address_of(path);
  if (!address) return Error{address.error()};
  if (somebody_serves(path)) return Error{"another leatd already serves at " + path + "; stop it or choose another socket"};
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) return Error{path + " exists and is not a socket; choose another socket path"};
    ::unlink(path.c_str());  // of a leatd that was killed: nobody answers there
  }
  Result<Fd> fd = make_socket(SOCK_NONBLOCK);
  if (!fd) return fd;
  // Nobody may connect between bind and chmod, so the file is made with the narrowest mode first.
  const mode_t before = umask(0177);
  const int bound = ::bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(sockaddr_un));
  const int why = errno;
  umask(before);
  if (bound != 0) return Error{system_text("cannot create the socket " + path, why) + "; choose a socket in a directory that exists and is writable"};
  if (::listen(fd->get(), 64) != 0 || ::chmod(path.c_str(), mode) != 0) {
    const int reason = errno;
    ::unlink(path.c_str());
    return Error{system_text("cannot listen at " + path, reason)};
  }
  return fd;
}

Result<Fd> accept_peer(int listener) {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return Fd(fd);
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Fd();
    return Error{system_text("cannot accept a connection (raise the limit of open files: ulimit -n)", errno)};
  }
}

Result<Fd> connect_to(const std::string& path, leat_error* error) {
  *error = LEAT_ERROR_system;
  Result<sockaddr_un> address = address_of(path);
  if (!address) return Error{address.error()};
  Result<Fd> fd = make_socket(0);
  if (!fd) return fd;
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(sockaddr_un)) == 0) {
    *error = LEAT_ERROR_ok;
    return fd;
  }
  switch (errno) {
    case ENOENT:
    case ECONNREFUSED:
    case ENOTSOCK:
      *error = LEAT_ERROR_daemon_absent;
      return Error{"no leatd answers at " + path + "; start leatd or name its socket (LEAT_SOCKET)"};
    case EACCES:
    case EPERM:
      *error = LEAT_ERROR_not_permitted;
      return Error{"this user may not connect to " + path + "; ask for access (the socket's mode and leatd's configuration decide)"};
    case EAGAIN:
      *error = LEAT_ERROR_not_ready;
      return Error{"leatd at " + path + " has too many connections waiting; try again"};
    default:
      return Error{system_text("cannot connect to " + path, errno)};
  }
}

Result<Reply> await_reply(int socket, std::uint32_t request, std::int64_t timeout_ns, leat_error* error) {
  const std::int64_t until = now_ns() + timeout_ns;
  for (;;) {
    const std::int64_t left = std::max<std::int64_t>(until - now_ns(), 0);
    pollfd p{socket, POLLIN, 0};
    const timespec t{left / 1'000'000'000, left % 1'000'000'000};
    const int ready = ppoll(&p, 1, &t, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      *error = LEAT_ERROR_timed_out;
      return Error{"leatd did not reply in time; it may be overloaded or stopped (`leat status`)"};
    }
    Reply reply;
    std::string text;
    switch (receive(socket, false, &reply.packet, &reply.fds, &text)) {
      case Got::nothing:
        continue;
      case Got::closed:
        *error = LEAT_ERROR_disconnected;
        return Error{"leatd closed the connection; see its log"};
      case Got::broken:
        *error = LEAT_ERROR_protocol;
        return Error{text};
      case Got::message:
        break;
    }
    Header header;
    if (const char* wrong = decode_header(reply.packet, &header)) {
      *error = wrong == kVersionProblem.data() ? LEAT_ERROR_wrong_version : LEAT_ERROR_protocol;
      return Error{std::string("leatd's reply: ") + wrong + "; install the same release of both"};
    }
    if (header.request != request) continue;  // the late reply to a request that was given up
    if (header.type == MessageType::refused) {
      Refused m;
      if (const char* wrong = decode(reply.packet, &m)) {
        *error = LEAT_ERROR_protocol;
        return Error{wrong};
      }
      *error = static_cast<leat_error>(m.error);
      return Error{std::string(text_of(m.text))};
    }
    *error = LEAT_ERROR_ok;
    return reply;
  }
}

namespace {
constexpr std::int64_t kObserverTimeoutNs = 2'000'000'000;
}

Result<Observer> Observer::connect(const std::string& path, leat_error* error) {
  Result<Fd> fd = connect_to(path, error);
  if (!fd) return Error{fd.error()};
  Observer o;
  o.socket_ = std::move(fd).value();
  Hello hello;
  hello.header.request = o.request_++;
  hello.role = PeerRole::observer;
  set_text(hello.name, "observer");
  *error = LEAT_ERROR_disconnected;
  if (Status sent = send(o.fd(), hello); !sent) return Error{sent.error()};
  Result<Reply> reply = await_reply(o.fd(), hello.header.request, kObserverTimeoutNs, error);
  if (!reply) return Error{reply.error()};
  Welcome welcome;
  if (const char* wrong = decode(reply->packet, &welcome)) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return o;
}

Result<Observer::Counters> Observer::counters(leat_error* error) {
  Observe ask;
  ask.header.request = request_++;
  *error = LEAT_ERROR_disconnected;
  if (Status sent = send(fd(), ask); !sent) return Error{sent.error()};
  Result<Reply> reply = await_reply(fd(), ask.header.request, kObserverTimeoutNs, error);
  if (!reply) return Error{reply.error()};
  Observed m;
  const char* wrong = decode(reply->packet, &m);
  if (wrong == nullptr && reply->fds.size() != 1) wrong = "observed: the counters' descriptor is missing";
  if (wrong != nullptr) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return Counters{std::move(reply->fds[0]), m.bytes};
}

Result<std::string> Observer::status(leat_error* error) {
  StatusRequest ask;
  ask.header.request = request_++;
  *error = LEAT_ERROR_disconnected;
  if (Status sent = send(fd(), ask); !sent) return Error{sent.error()};
  Result<Reply> reply = await_reply(fd(), ask.header.request, kObserverTimeoutNs, error);
  if (!reply) return Error{reply.error()};
  StatusReply m;
  std::string_view tail;
  if (const char* wrong = decode(reply->packet, &m, &tail)) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return std::string(tail);
}

}  // namespace leat::shm
