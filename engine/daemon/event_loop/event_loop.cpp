#include "engine/daemon/event_loop/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace leat::daemon {
namespace {

constexpr std::size_t kBatch = 64;  // events taken from the kernel at once

}  // namespace

Result<EventLoop> EventLoop::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return Error{std::string("epoll cannot start: ") + std::strerror(errno) + "; raise the limit on open files"};
  return EventLoop(std::move(epoll));
}

Status EventLoop::watch(int fd, std::uint64_t token, bool writable) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (writable ? EPOLLOUT : 0u);
  event.data.u64 = token;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return Done{};
  if (errno == ENOENT && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Done{};
  return Error{std::string("epoll cannot watch a descriptor: ") + std::strerror(errno)};
}

void EventLoop::unwatch(int fd) { (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::size_t EventLoop::wait(std::int64_t timeout_ns, std::span<Readiness> out) {
  std::array<epoll_event, kBatch> events;
  const int room = static_cast<int>(std::min(out.size(), events.size()));
  // Rounded up: waking a little late is harmless, waking early would only mean waiting again.
  const std::int64_t ms =
      timeout_ns < 0 ? -1 : std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, 1'000'000'000);
  const int count = epoll_wait(epoll_.get(), events.data(), room, static_cast<int>(ms));
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto bits = events[at].events;
    out[at] = {events[at].data.u64, (bits & EPOLLIN) != 0, (bits & EPOLLOUT) != 0,
               (bits & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0};
  }
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

}  // namespace leat::daemon
