#include "cuda/runtime/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace leat::gpu {
namespace {

// A message on the wire: length of the kind (32 bits), the kind, the body.
constexpr std::size_t kPrefixBytes = sizeof(std::uint32_t);

std::string errno_text(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

std::vector<Fd> take_fds(msghdr& header) {
  std::vector<Fd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// False: the deadline passed first, or poll failed (errno is then set, else 0).
bool wait_readable(int fd, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    errno = 0;
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long>(left, 0, 3'600'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && Clock::now() >= deadline) {
      errno = 0;
      return false;
    }
  }
}

}  // namespace

Result<std::pair<Channel, Channel>> Channel::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return Error{errno_text("socketpair")};
  for (int end : ends) {  // room for one largest message beside the kernel's own book-keeping
    const int bytes = 4 * static_cast<int>(kMaxMessageBytes);
    if (::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0) return Error{errno_text("setsockopt")};
  }
  return std::pair{Channel(Fd(ends[0])), Channel(Fd(ends[1]))};
}

Status Channel::send(std::string_view kind, std::string_view body, std::span<const int> fds) {
  if (kPrefixBytes + kind.size() + body.size() > kMaxMessageBytes || fds.size() > kMaxFds) {
    return Error{"message '" + std::string(kind) + "' is too large to send"};
  }
  auto kind_bytes = static_cast<std::uint32_t>(kind.size());
  std::array<iovec, 3> parts{{{&kind_bytes, kPrefixBytes},
                              {const_cast<char*>(kind.data()), kind.size()},
                              {const_cast<char*>(body.data()), body.size()}}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return Error{errno_text("send")};
  }
  return Done{};
}

Received Channel::receive(Deadline deadline) {
  if (!wait_readable(socket_.get(), deadline)) {
    if (errno == 0) return {Receipt::timed_out, {}, "no answer in time"};
    return {Receipt::broken, {}, errno_text("poll")};
  }
  std::vector<char> bytes(kMaxMessageBytes);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    const Receipt receipt = errno == ECONNRESET ? Receipt::closed : Receipt::broken;
    return {receipt, {}, errno_text("recvmsg")};
  }
  if (got == 0) return {Receipt::closed, {}, "the other process is gone"};
  Message message{.kind = {}, .body = {}, .fds = take_fds(header)};
  std::uint32_t kind_bytes = 0;
  const auto size = static_cast<std::size_t>(got);
  if (size >= kPrefixBytes) std::memcpy(&kind_bytes, bytes.data(), kPrefixBytes);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || size < kPrefixBytes || kind_bytes > size - kPrefixBytes) {
    return {Receipt::broken, {}, "a malformed message arrived"};
  }
  message.kind.assign(bytes.data() + kPrefixBytes, kind_bytes);
  message.body.assign(bytes.data() + kPrefixBytes + kind_bytes, size - kPrefixBytes - kind_bytes);
  return {Receipt::message, std::move(message), {}};
}

Result<Message> Channel::expect(std::string_view kind, Deadline deadline) {
  Received received = receive(deadline);
  if (received.receipt != Receipt::message) return Error{received.text};
  if (received.message.kind == kind) return std::move(received.message);
  if (received.message.kind == "failed") return Error{received.message.body};
  return Error{"expected '" + std::string(kind) + "', got '" + received.message.kind + "'"};
}

}  // namespace leat::gpu
