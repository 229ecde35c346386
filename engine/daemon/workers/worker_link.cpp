#include "engine/daemon/workers/worker_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/worker/link/protocol.h"
#include "leat/leat.h"
#include "shm/src/protocol/kernel_features.h"
#include "tools/base/text/system_reason.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kResendNs = 20'000'000;

}  // namespace

WorkerMessage pool_message(const SharedPool& pool) {
  return {.packet = worker::encode(worker::AddPool{pool.id, pool.generation, pool.pool->spec()}), .pool = pool};
}

Result<WorkerLink::WorkerEnds> WorkerLink::open(bool descriptors) {
  auto port = WorkerPort::create();
  if (!port) return Error{port.error()};
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    return Error{"no socket pair: " + text::system_reason(errno)};
  socket_ = shm::Fd(pair[0]);
  shm::Fd theirs(pair[1]);
  if (!descriptors) refuse_descriptors();
  auto output = output_.open();
  if (!output) return Error{output.error()};
  port_ = std::move(*port);
  queue_.clear();
  resend_ns_ = read_by_ns_ = INT64_MAX;
  return WorkerEnds{std::move(theirs), std::move(*output)};
}

Status WorkerLink::watch() {
  if (auto status = loop_.watch(socket_.get(), tokens_.socket); !status) return status;
  return loop_.watch(output_.fd(), tokens_.output);
}

void WorkerLink::refuse_descriptors() { shm::refuse_descriptors(socket_.get()); }

void WorkerLink::close(std::int64_t now) {
  loop_.unwatch(socket_.get());
  socket_.reset();
  if (output_.fd() >= 0) loop_.unwatch(output_.fd());
  output_.close(now, calls_);
  queue_.clear();
  resend_ns_ = read_by_ns_ = INT64_MAX;
}

void WorkerLink::send(WorkerMessage message) {
  queue_.push_back(std::move(message));
  flush();
}

shm::Sent WorkerLink::send_first() {
  WorkerMessage& message = queue_.front();
  if (message.pool) {
    auto frames = message.pool->pool->frames_for_worker();
    auto results = message.pool->pool->results_for_worker();
    if (!frames || !results) return shm::Sent::exhausted;
    message.fds.push_back(std::move(*frames));
    message.fds.push_back(std::move(*results));
  }
  std::vector<int> fds;
  for (const auto& fd : message.fds) fds.push_back(fd.get());
  shm::Sent sent{};
  calls_.timed([&] { sent = shm::send_packet(socket_.get(), message.packet, fds); });
  if (message.pool) message.fds.clear();
  return sent;
}

void WorkerLink::flush() {
  resend_ns_ = INT64_MAX;
  bool full = false;
  while (!queue_.empty()) {
    const shm::Sent sent = send_first();
    if (sent != shm::Sent::sent) {
      // The socket stays writable where descriptors are what is missing: to wait for that would be to spin.
      if (sent == shm::Sent::exhausted) {
        resend_ns_ = leat_now_ns() + kResendNs;
        exhausted_();
      }
      full = sent == shm::Sent::full;
      break;  // full, or the worker has died: SIGCHLD tells
    }
    port_->control_sent();  // cells pushed from now on are run after it was read
    queue_.pop_front();
    read_by_ns_ = INT64_MAX;
  }
  if (full && read_by_ns_ == INT64_MAX) read_by_ns_ = leat_now_ns() + max_unread_ns_;
  (void)loop_.watch(socket_.get(), tokens_.socket, !queue_.empty() && resend_ns_ == INT64_MAX);
}

bool WorkerLink::has_sent(std::uint32_t pool) const noexcept {
  return std::ranges::none_of(queue_, [&](const WorkerMessage& m) { return m.pool && m.pool->id == pool; });
}

bool WorkerLink::take_back(std::uint32_t pool) {
  return std::erase_if(queue_, [&](const WorkerMessage& m) { return m.pool && m.pool->id == pool; }) != 0;
}

shm::Got WorkerLink::receive(std::vector<std::byte>& packet, std::vector<shm::Fd>* fds) {
  std::string text;
  shm::Got got{};
  calls_.timed([&] { got = shm::receive(socket_.get(), false, &packet, fds, &text); });
  return got;
}

// A worker that prints without end is looked at now and then.
void WorkerLink::pass_output_on(std::int64_t now) {
  const int fd = output_.fd();
  if (fd < 0) return;
  const bool paused = output_.next_ns() != INT64_MAX;
  const bool goes_on = output_.pass_on(now, calls_);
  if (output_.fd() < 0 || (!goes_on && !paused)) loop_.unwatch(fd);
  if (output_.fd() >= 0 && goes_on && paused) (void)loop_.watch(fd, tokens_.output);
}

bool WorkerLink::was_slow() noexcept {
  if (!calls_.too_slow()) return false;
  calls_ = {};
  return true;
}

}  // namespace leat::daemon
