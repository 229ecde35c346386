#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "engine/daemon/event_loop/event_loop.h"
#include "shm/src/segments/segment.h"

namespace leat::daemon {
namespace {

constexpr std::size_t kBatch = 64;  // events taken from the kernel at once

class EpollLoop final : public EventLoop {
 public:
  explicit EpollLoop(shm::Fd fd) : fd_(std::move(fd)) {}

  Status watch(int fd, std::uint64_t token, bool writable) override {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | (writable ? EPOLLOUT : 0u);
    event.data.u64 = token;
    if (epoll_ctl(fd_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return Done{};
    if (errno == ENOENT && epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Done{};
    return Error{std::string("epoll cannot watch a descriptor: ") + std::strerror(errno)};
  }

  void unwatch(int fd) override { (void)epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  std::size_t wait(std::int64_t timeout_ns, std::span<Readiness> out) override {
    std::array<epoll_event, kBatch> events;
    const int room = static_cast<int>(std::min(out.size(), events.size()));
    // Rounded up: waking a little late is harmless, waking early would only mean waiting again.
    const std::int64_t ms =
        timeout_ns < 0 ? -1 : std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, 1'000'000'000);
    const int count = epoll_wait(fd_.get(), events.data(), room, static_cast<int>(ms));
    for (int i = 0; i < count; ++i) {
      const auto bits = events[static_cast<std::size_t>(i)].events;
      out[static_cast<std::size_t>(i)] = {events[static_cast<std::size_t>(i)].data.u64, (bits & EPOLLIN) != 0,
                                          (bits & EPOLLOUT) != 0, (bits & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0};
    }
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

  std::string_view name() const override { return "epoll"; }

 private:
  shm::Fd fd_;
};

}  // namespace

Result<std::unique_ptr<EventLoop>> make_epoll_loop() {
  shm::Fd fd(epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return Error{std::string("epoll cannot start: ") + std::strerror(errno) + "; raise the limit on open files"};
  return std::unique_ptr<EventLoop>(std::make_unique<EpollLoop>(std::move(fd)));
}

}  // namespace leat::daemon
