// The transport of the control protocol: packets and descriptors over one Unix socket.
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/system_text.h"
#include "shm/src/rings/clock.h"

namespace leat::shm {

namespace {

constexpr std::size_t kMaxFds = 4;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{"socket path '" + path + "' is empty or longer than " + std::to_string(sizeof address.sun_path - 1) +
                 " bytes; choose a shorter one"};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
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
  const int look = fds == nullptr ? MSG_PEEK : 0;
  const auto take = [&] {
    ssize_t n;
    do n = ::recvmsg(socket, &message, look | MSG_CMSG_CLOEXEC | (blocking ? 0 : MSG_DONTWAIT));
    while (n < 0 && errno == EINTR);
    return n;
  };
  ssize_t n = take();
  // The other side closed without reading everything, which the kernel tells first: what it said before is still there.
  if (n < 0 && errno == ECONNRESET) n = take();
  if (n < 0) {
    packet->clear();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Got::nothing;
    if (errno == ECONNRESET) return Got::closed;
    *text = system_text("cannot receive a control message", errno);
    return Got::broken;
  }
  packet->resize(static_cast<std::size_t>(n));
  if (fds == nullptr && (message.msg_flags & MSG_CTRUNC) != 0) return Got::descriptors;
  if (fds != nullptr)
    collect(message, *fds);
  else
    (void)::recv(socket, nullptr, 0, MSG_DONTWAIT | MSG_TRUNC);  // the same packet: nobody else reads here
  if (n == 0) return Got::closed;  // SEQPACKET: an empty packet is not sent by anybody honest either
  if (message.msg_flags & MSG_TRUNC) {
    *text = "control message longer than any may be";
    return Got::broken;
  }
  return Got::message;
}

Sent send_packet(int socket, std::span<const std::byte> packet, std::span<const int> fds) noexcept {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec piece{const_cast<std::byte*>(packet.data()), packet.size()};
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
  if (n >= 0) return Sent::sent;
  switch (errno) {
    case EAGAIN:
      return Sent::full;
    case ETOOMANYREFS:
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Sent::exhausted;
    default:
      return Sent::gone;
  }
}

void throw_away(int socket, std::uint32_t most) noexcept {
  char begin;
  for (std::uint32_t i = 0; i < most; ++i)
    if (::recv(socket, &begin, sizeof begin, MSG_DONTWAIT) < 0) return;
}

Status send_bytes(int socket, std::vector<std::byte> packet, std::span<const int> fds) {
  if (packet.size() > kMaxMessage || fds.size() > kMaxFds) return Error{"control message too long to send"};
  if (send_packet(socket, packet, fds) == Sent::sent) return Done{};
  return Error{system_text("cannot send a control message", errno)};
}

bool all_read(int socket) noexcept {
  int waiting = 0;
  return ::ioctl(socket, SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

Status refuse(int socket, std::uint32_t request, leat_error error, std::string_view text) {
  Refused m;
  m.header.request = request;
  m.error = static_cast<std::uint32_t>(error);
  set_text(m.text, text);
  return send(socket, m);
}

Result<Fd> connect_to(const std::string& path, leat_error* error, std::int64_t timeout_ns) {
  *error = LEAT_ERROR_system;
  Result<sockaddr_un> address = address_of(path);
  if (!address) return Error{address.error()};
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return Error{system_text("cannot create a socket", errno)};
  // A Unix socket's connect() waits as long as a send may where others wait to be accepted; zero would be for ever.
  const auto set_limit = [&](std::int64_t ns) {
    const timeval limit{ns / 1'000'000'000, ns / 1'000 % 1'000'000};
    (void)setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  };
  const std::int64_t until = monotonic_ns() + timeout_ns;
  int connected = 0;
  do {
    set_limit(std::max<std::int64_t>(until - monotonic_ns(), 1'000));
    connected = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(sockaddr_un));
  } while (connected != 0 && errno == EINTR && monotonic_ns() < until);
  if (connected == 0) {
    set_limit(0);
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
      return Error{"this user may not connect to " + path +
                   "; ask for access (the socket's mode and leatd's configuration decide)"};
    case EAGAIN:
    case EINTR:
      *error = LEAT_ERROR_timed_out;
      return Error{"leatd at " + path +
                   " accepted no connection in time: too many wait there, or it is stopped; try again"};
    default:
      return Error{system_text("cannot connect to " + path, errno)};
  }
}

Result<Reply> await_reply(int socket, std::uint32_t request, std::int64_t timeout_ns, leat_error* error) {
  const std::int64_t until = monotonic_ns() + timeout_ns;
  for (;;) {
    const std::int64_t left = std::max<std::int64_t>(until - monotonic_ns(), 0);
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
      case Got::descriptors:
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
    const bool refused = header.type == MessageType::refused;
    // The late reply to a request that was given up is passed over; a refusal of request 0 is of the connection.
    if (header.request != request && !(refused && header.request == 0)) continue;
    if (refused) {
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

template <class M>
Result<Reply> Observer::ask(M message, leat_error* error, std::string_view tail) {
  message.header.request = request_++;
  *error = LEAT_ERROR_disconnected;
  // Also where it cannot be sent: the connection may have been refused, and the reason waits to be read.
  const Status sent = send(fd(), message, {}, tail);
  return await_reply(fd(), message.header.request, sent ? patience_ns_ : 0, error);
}

Result<Observer> Observer::connect(const std::string& path, leat_error* error, std::int64_t patience_ns) {
  Result<Fd> fd = connect_to(path, error, patience_ns);
  if (!fd) return Error{fd.error()};
  Observer o;
  o.patience_ns_ = patience_ns;
  o.socket_ = std::move(fd).value();
  Hello hello;
  hello.role = PeerRole::observer;
  set_text(hello.name, "observer");
  Result<Reply> reply = o.ask(hello, error);
  if (!reply) return Error{reply.error()};
  Welcome welcome;
  if (const char* wrong = decode(reply->packet, &welcome)) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return o;
}

Result<Observer::Counters> Observer::counters(leat_error* error) {
  Result<Reply> reply = ask(Observe{}, error);
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
  Result<Reply> reply = ask(StatusRequest{}, error);
  if (!reply) return Error{reply.error()};
  StatusReply m;
  std::string_view tail;
  if (const char* wrong = decode(reply->packet, &m, &tail)) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return std::string(tail);
}

Result<std::uint64_t> Observer::change(const Change& what, std::string_view text, leat_error* error) {
  Result<Reply> reply = ask(what, error, text);
  if (!reply) return Error{reply.error()};
  ChangeBegun m;
  if (const char* wrong = decode(reply->packet, &m)) {
    *error = LEAT_ERROR_protocol;
    return Error{wrong};
  }
  return m.number;
}

}  // namespace leat::shm
