#include "shm/src/rings/doorbell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "shm/src/protocol/kernel_features.h"

namespace leat::shm {

Result<Doorbell> Doorbell::create() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return Error{std::string("cannot create an eventfd: ") + std::strerror(errno)};
  return Doorbell(Fd(fd));
}

void Doorbell::ring() const noexcept {
  const std::uint64_t one = 1;
  // EAGAIN means the counter is full, so the sleeper wakes anyway.
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Doorbell::drain() const noexcept {
  std::uint64_t count;
  while (::read(fd_.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
}

Result<BellSocket::Pair> BellSocket::create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Error{std::string("cannot create a socket pair: ") + std::strerror(errno)};
  for (const int end : ends) refuse_descriptors(end);
  Pair pair{BellSocket(Fd(ends[0])), Fd(ends[1])};
  pair.daemon.looks_first_ = !can_refuse_descriptors();
  return pair;
}

void BellSocket::ring() const noexcept {
  const char one = 1;
  // EAGAIN: unread rings are waiting already. EPIPE: the peer is gone and will be noticed by whoever polls.
  while (::send(fd_.get(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

Drained BellSocket::drain() const noexcept {
  char ring;
  iovec piece{&ring, sizeof ring};
  const auto take = [&](int flags) -> ssize_t {
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    ssize_t n;
    do n = ::recvmsg(fd_.get(), &message, flags | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return (message.msg_flags & MSG_CTRUNC) != 0 ? 2 : n;  // 2: it carries what there is no room for
  };
  ssize_t n = looks_first_ ? take(MSG_PEEK) : 1;
  if (n == 2) return Drained::descriptors;
  if (n > 0) n = take(0);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ? Drained::rings : Drained::hung_up;
}

bool BellSocket::wait(std::int64_t timeout_ns) const noexcept {
  pollfd p{fd_.get(), POLLIN, 0};
  timespec t{};
  t.tv_sec = timeout_ns / 1'000'000'000;
  t.tv_nsec = timeout_ns % 1'000'000'000;
  // EINTR counts as woken: the caller looks at its rings and at the clock again.
  return ppoll(&p, 1, timeout_ns < 0 ? nullptr : &t, nullptr) != 0;
}

bool BellSocket::hung_up() const noexcept {
  pollfd p{fd_.get(), POLLRDHUP, 0};
  return fd_.get() < 0 || (::poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0);
}

void BellSocket::hang_up() const noexcept { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace leat::shm
