// How the scheduler thread sleeps and is woken: its queue of commands, the words it announces its sleep with, and the
// epoll set of bells it waits on.
#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

// While no partition takes a batch, a submission can start nothing, and no client wakes the thread: the next end of a
// batch does, or this time's.
constexpr std::int64_t kUnseenNs = 4'000'000;
constexpr std::int64_t kLongCallNs = 400'000;  // of a microsecond or two that a call on a bell takes
// Tokens in the epoll set: clients have their index, workers their partition's behind all of these.
constexpr std::uint64_t kOwnBell = UINT64_MAX;
constexpr std::uint64_t kFirstWorkerBell = std::uint64_t{1} << 32;

// epoll_pwait2 where the kernel has it (Linux 5.11), else epoll_wait, whose milliseconds are rounded up: to wait too
// short would be to spin. wait_ns < 0: for ever.
int wait_for_events(int poll, std::span<epoll_event> events, std::int64_t wait_ns) noexcept {
  static std::atomic<bool> has_pwait2 = true;  // relaxed: found out anew at worst
  const int room = static_cast<int>(events.size());
  if (has_pwait2.load(std::memory_order_relaxed)) {
    const timespec limit{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    const int count = epoll_pwait2(poll, events.data(), room, wait_ns < 0 ? nullptr : &limit, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    has_pwait2.store(false, std::memory_order_relaxed);  // EPERM: a sandbox that does not know it
  }
  const std::int64_t ms = wait_ns < 0 ? -1 : std::min<std::int64_t>((wait_ns + 999'999) / 1'000'000, INT32_MAX);
  return epoll_wait(poll, events.data(), room, static_cast<int>(ms));
}

}  // namespace

Status SchedulerLoop::open_poll() {
  poll_ = shm::Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kOwnBell;
  if (!poll_ || epoll_ctl(poll_.get(), EPOLL_CTL_ADD, control_.bell_fd(), &event) != 0)
    return Error{std::string("the scheduler thread cannot wait: ") + std::strerror(errno) +
                 "; raise the limit on open files"};
  return Done{};
}

// Without room for it, what its worker reports is seen at the next turn that something else begins.
void SchedulerLoop::watch_worker(std::uint32_t p) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kFirstWorkerBell + p;
  Partition& partition = partitions_[p];
  partition.bell_watched = epoll_ctl(poll_.get(), EPOLL_CTL_ADD, partition.port->bell_fd(), &event) == 0;
}

void SchedulerLoop::unwatch_worker(std::uint32_t p) noexcept {
  Partition& partition = partitions_[p];
  if (partition.bell_watched) (void)epoll_ctl(poll_.get(), EPOLL_CTL_DEL, partition.port->bell_fd(), nullptr);
  partition.bell_watched = false;
}

// A worker that has hung up would be readable for ever; the control thread hears of its end by SIGCHLD.
void SchedulerLoop::drain_bell(std::uint64_t token) noexcept {
  if (token == kOwnBell) return control_.drain_bell();
  if (token >= kFirstWorkerBell) {
    const auto p = static_cast<std::uint32_t>(token - kFirstWorkerBell);
    WorkerPort* const port = partitions_[p].port;
    if (port == nullptr) return;
    if (!port->drain_bell()) unwatch_worker(p);
    if (port->slow()) give_up(p);
    return;
  }
  if (clients_[token].port != nullptr) look_at_bell(static_cast<std::uint32_t>(token));
}

// A call on a client's bell. False: it took long, of this thread's own time, and is not to be made again. The CPU clock
// is only read where the other says that there was time for it.
template <class Call>
bool SchedulerLoop::in_time(Call call) noexcept {
  const std::int64_t from = shm::monotonic_ns();
  call();
  return shm::monotonic_ns() - from < kLongCallNs || meter_.min_own_since_ns(from) < kLongCallNs;
}

bool SchedulerLoop::wake(std::uint32_t index) noexcept {
  Client& client = clients_[index];
  if (client.apart) {
    control_.notify({.kind = SchedulerEvent::Kind::ring, .client = index});
    return false;
  }
  if (!in_time([&] { client.port->ring(); })) set_apart(index);
  return true;
}

void SchedulerLoop::look_at_bell(std::uint32_t index) noexcept {
  Client& client = clients_[index];
  shm::Drained found{};
  const bool quick = in_time([&] { found = client.port->drain_bell(); });
  // Hung up: it would be readable for ever. The control thread hears of the end by the client's socket.
  if (found != shm::Drained::rings) unwatch_bell(client);
  if (found == shm::Drained::descriptors) {
    client.port->violate(shm::Violation::descriptors);
    tell_violation(index, shm::monotonic_ns());
  }
  if (!quick) set_apart(index);
}

void SchedulerLoop::set_apart(std::uint32_t index) noexcept {
  unwatch_bell(clients_[index]);
  clients_[index].apart = true;
  control_.notify({.kind = SchedulerEvent::Kind::bell_apart, .client = index});
}

void SchedulerLoop::watch_bell(std::uint32_t index) noexcept {
  Client& client = clients_[index];
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = index;
  client.bell_watched = epoll_ctl(poll_.get(), EPOLL_CTL_ADD, client.port->bell_fd(), &event) == 0;
}

void SchedulerLoop::unwatch_bell(Client& client) noexcept {
  if (client.bell_watched) (void)epoll_ctl(poll_.get(), EPOLL_CTL_DEL, client.port->bell_fd(), nullptr);
  client.bell_watched = false;
}

bool SchedulerLoop::anything() const noexcept {
  if (control_.has_commands()) return true;
  for (const auto& p : used_partitions())
    if (p.port != nullptr && !p.broken && p.port->has_reports()) return true;
  for (const auto c : clients_.live)
    if (!clients_[c].leaving && !clients_[c].told && clients_[c].port->has_submissions()) return true;
  return false;
}

void SchedulerLoop::park() noexcept {
  const bool full = core_->full();
  const auto announce = [&] {
    control_.announce_sleep();
    next_look_ns_ = core::kNever;  // a worker that ended its batches wakes nobody
    for (auto& p : used_partitions()) {
      next_look_ns_ = std::min(next_look_ns_, p.hangs_at_ns);
      if (p.port != nullptr) p.port->announce_sleep();
    }
    for (const auto c : clients_.live) {
      if (!full) clients_[c].port->announce_sleep();
    }
  };
  const bool idle = shm::may_sleep(announce, [this] { return !anything(); });
  const std::int64_t now = shm::monotonic_ns();
  const std::int64_t timer = std::min({core_->next_timer(), next_look_ns_, full ? now + kUnseenNs : core::kNever});
  const std::int64_t wait_ns = timer == core::kNever ? -1 : timer - now;
  if (idle && (timer == core::kNever || wait_ns > 0)) {
    std::array<epoll_event, 32> events;
    const int count = wait_for_events(poll_.get(), events, timer == core::kNever ? -1 : wait_ns);
    for (int i = 0; i < count; ++i) drain_bell(events[static_cast<std::size_t>(i)].data.u64);
  }
  control_.announce_awake();
  for (auto& p : used_partitions())
    if (p.port != nullptr) p.port->announce_awake();
  for (const auto c : clients_.live) {
    if (!full) clients_[c].port->announce_awake();
  }
}

}  // namespace leat::daemon
