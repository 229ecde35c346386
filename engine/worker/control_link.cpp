#include "engine/worker/control_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace leat::worker {

ControlLink::Got ControlLink::receive(bool wait) {
  descriptors.clear();
  pollfd ready{fd_.get(), POLLIN, 0};
  while (wait && poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
  switch (shm::receive(fd_.get(), false, &packet, &descriptors, &why_)) {
    case shm::Got::message:
      ++messages_;
      return Got::message;
    case shm::Got::nothing:
      return Got::nothing;
    case shm::Got::closed:
    case shm::Got::broken:
    case shm::Got::descriptors:
      break;
  }
  return Got::gone;
}

Status ControlLink::wait_for_message() {
  if (receive(true) != Got::message) return Error{"leatd closed the control socket before the setup came " + why_};
  return Done{};
}

namespace {

// 0, or errno.
int send_now(int fd, std::span<const std::byte> bytes) {
  ssize_t n;
  do n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return n >= 0 ? 0 : errno;
}

}  // namespace

Status ControlLink::tell(std::span<const std::byte> bytes) const {
  const int error = send_now(fd_.get(), bytes);
  if (error == 0) return Done{};
  return Error{std::string("cannot send a control message: ") + std::strerror(error)};
}

// Whatever else is wrong with the socket ends the worker.
bool ControlLink::told(std::span<const std::byte> bytes) const {
  const int error = send_now(fd_.get(), bytes);
  return error != EAGAIN && error != EWOULDBLOCK;
}

Status ControlLink::send(std::vector<std::byte> bytes, std::span<const int> fds) const {
  return shm::send_bytes(fd_.get(), std::move(bytes), fds);
}

}  // namespace leat::worker
