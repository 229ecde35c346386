// io_uring: one single-shot poll per descriptor, armed again before the next wait once its event was delivered, which
// makes it level-triggered like epoll's.
#include <liburing.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "engine/daemon/event_loop/event_loop.h"

namespace leat::daemon {
namespace {

constexpr unsigned kEntries = 256;

class UringLoop final : public EventLoop {
 public:
  explicit UringLoop(const io_uring& ring) : ring_(ring) {}
  ~UringLoop() override { io_uring_queue_exit(&ring_); }

  Status watch(int fd, std::uint64_t token, bool writable) override {
    Watched& w = watched_[fd];
    if (w.armed) disarm(fd, w);
    w.token = token;
    w.mask = POLLIN | POLLRDHUP | (writable ? POLLOUT : 0);
    to_arm_.push_back(fd);
    return Done{};
  }

  void unwatch(int fd) override {
    const auto it = watched_.find(fd);
    if (it == watched_.end()) return;
    if (it->second.armed) disarm(fd, it->second);
    watched_.erase(it);
    io_uring_submit(&ring_);  // the kernel lets go of the descriptor now, before its owner closes it
  }

  std::size_t wait(std::int64_t timeout_ns, std::span<Readiness> out) override {
    arm();
    io_uring_submit(&ring_);
    io_uring_cqe* first = nullptr;
    if (timeout_ns < 0) {
      if (io_uring_wait_cqe(&ring_, &first) != 0) return 0;
    } else {
      __kernel_timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
      if (io_uring_wait_cqe_timeout(&ring_, &first, &limit) != 0) return 0;
    }
    std::size_t count = 0;
    while (count < out.size() && io_uring_peek_cqe(&ring_, &first) == 0) {
      const std::uint64_t data = first->user_data;
      const int bits = first->res;
      io_uring_cqe_seen(&ring_, first);
      const auto it = watched_.find(static_cast<int>(data & 0xffff'ffffu));
      if (it == watched_.end() || !it->second.armed || it->second.generation != static_cast<std::uint32_t>(data >> 32))
        continue;
      it->second.armed = false;
      to_arm_.push_back(it->first);
      out[count++] = {it->second.token, (bits & POLLIN) != 0 && bits > 0, (bits & POLLOUT) != 0 && bits > 0,
                      bits < 0 || (bits & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0};
    }
    return count;
  }

  std::string_view name() const override { return "io_uring"; }

 private:
  struct Watched {
    std::uint64_t token = 0;
    std::uint32_t generation = 0;
    int mask = 0;
    bool armed = false;
  };

  static std::uint64_t data_of(int fd, std::uint32_t generation) {
    return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
  }

  io_uring_sqe* sqe() {
    io_uring_sqe* s = io_uring_get_sqe(&ring_);
    if (s == nullptr) {
      io_uring_submit(&ring_);
      s = io_uring_get_sqe(&ring_);
    }
    return s;
  }

  void arm() {
    for (const int fd : to_arm_) {
      const auto it = watched_.find(fd);
      if (it == watched_.end() || it->second.armed) continue;
      io_uring_sqe* s = sqe();
      it->second.generation = ++generation_;
      it->second.armed = true;
      io_uring_prep_poll_add(s, fd, static_cast<unsigned>(it->second.mask));
      io_uring_sqe_set_data64(s, data_of(fd, it->second.generation));
    }
    to_arm_.clear();
  }

  // The removal's own completion and the removed poll's carry data no watched descriptor has any more.
  void disarm(int fd, Watched& w) {
    io_uring_sqe* s = sqe();
    io_uring_prep_poll_remove(s, data_of(fd, w.generation));
    io_uring_sqe_set_data64(s, UINT64_MAX);
    w.armed = false;
  }

  io_uring ring_;
  std::unordered_map<int, Watched> watched_;
  std::vector<int> to_arm_;
  std::uint32_t generation_ =
      0;  // over all descriptors, so that a number used again is not mistaken for its predecessor
};

}  // namespace

Result<std::unique_ptr<EventLoop>> make_uring_loop() {
  io_uring ring{};
  const int error = io_uring_queue_init(kEntries, &ring, 0);
  if (error != 0) return Error{std::string("the kernel refuses io_uring (") + std::strerror(-error) + ")"};
  return std::unique_ptr<EventLoop>(std::make_unique<UringLoop>(ring));
}

}  // namespace leat::daemon
