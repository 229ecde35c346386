#include "engine/worker/bell.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "shm/src/protocol/kernel_features.h"

namespace leat::worker {

Result<Bell::Pair> Bell::create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("cannot create a socket pair: ") + std::strerror(errno)};
  Pair pair{Bell(Fd(ends[0])), Fd(ends[1])};
  shm::refuse_descriptors(ends[0]);
  shm::refuse_descriptors(ends[1]);
  return pair;
}

void Bell::ring() const noexcept {
  const char one = 1;
  // EAGAIN: unread rings are waiting already. EPIPE: the peer is gone and will be noticed by whoever polls.
  while (::send(fd_.get(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

bool Bell::drain() const noexcept {
  char rings[512];
  ssize_t n;
  do n = ::recv(fd_.get(), rings, sizeof rings, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return n > 0 || (n < 0 && errno == EAGAIN);
}

}  // namespace leat::worker
