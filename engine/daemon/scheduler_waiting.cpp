// How the scheduler thread sleeps and is woken: its mailbox, the words it announces its sleep with, and the epoll set of
// bells it waits on.
#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/daemon/scheduler_loop.h"

namespace leat::daemon {
namespace {

constexpr std::uint64_t kOwnBell = UINT64_MAX;      // token in the epoll set; clients have their index

}  // namespace

std::int64_t SchedulerLoop::clock_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

Status SchedulerLoop::open_poll() {
  poll_ = shm::Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kOwnBell;
  if (!poll_ || epoll_ctl(poll_.get(), EPOLL_CTL_ADD, bell_.fd(), &event) != 0)
    return Error{std::string("the scheduler thread cannot wait: ") + std::strerror(errno) + "; raise the limit on open files"};
  return Done{};
}

void SchedulerLoop::command(const Command& command) noexcept {
  while (!commands_.push(command)) {
    bell_.ring();
    std::this_thread::yield();
  }
  shm::full_fence();  // the push before the look; partner: the fence in park()
  if (asleep_.load(std::memory_order_relaxed) != 0) bell_.ring();
}

void SchedulerLoop::notify(const Notice& notice) noexcept {
  // The control thread drains without waiting for us, so room comes; kMailboxRoom makes even that rare.
  while (!notices_.push(notice)) {
    notices_bell_.ring();
    std::this_thread::yield();
  }
  noticed_ = true;
}

bool SchedulerLoop::anything() const noexcept {
  if (!commands_.empty()) return true;
  for (const auto& p : partitions_)
    if (p.port != nullptr && !p.broken && p.port->has_reports()) return true;
  for (const auto c : live_clients_)
    if (!clients_[c].leaving && !clients_[c].told && clients_[c].port->has_submissions()) return true;
  return false;
}

void SchedulerLoop::park() noexcept {
  asleep_.store(1, std::memory_order_relaxed);
  next_look_ns_ = core::kNever;  // a worker that ended its batches wakes nobody
  for (auto& p : partitions_) {
    next_look_ns_ = std::min(next_look_ns_, p.hangs_at_ns);
    if (p.port != nullptr) p.port->announce_sleep();
  }
  for (const auto c : live_clients_) clients_[c].port->announce_sleep();
  shm::full_fence();  // our words before our look; partners: Waker::should_ring() of clients and workers, command()
  const std::int64_t timer = std::min(core_->next_timer(), next_look_ns_);
  const std::int64_t wait_ns = timer == core::kNever ? -1 : timer - clock_ns();
  if (!anything() && (timer == core::kNever || wait_ns > 0)) {
    std::array<epoll_event, 32> events;
    const timespec limit{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    const int count = epoll_pwait2(poll_.get(), events.data(), static_cast<int>(events.size()), timer == core::kNever ? nullptr : &limit, nullptr);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
      if (token == kOwnBell) {
        bell_.drain();
        continue;
      }
      Client& client = clients_[token];
      if (client.port == nullptr || client.port->drain_bell()) continue;
      // Hung up: it would be readable for ever. The control thread hears of the end by the client's socket.
      (void)epoll_ctl(poll_.get(), EPOLL_CTL_DEL, client.port->bell_fd(), nullptr);
      client.bell_watched = false;
    }
  }
  asleep_.store(0, std::memory_order_relaxed);
  for (auto& p : partitions_)
    if (p.port != nullptr) p.port->announce_awake();
  for (const auto c : live_clients_) clients_[c].port->announce_awake();
}

}  // namespace leat::daemon
