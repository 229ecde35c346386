// What leatd and one worker's process talk by: the control socket with its queue of messages, what the worker prints,
// and the port of batches that the scheduler thread uses. A message that a busy worker has not read yet waits in the
// queue, and so does one that cannot be sent for want of descriptors: it is tried again, and counts for the worker when
// it has left. Descriptors of a stream's pool are made when its message goes.
//
// Thread rule: the control thread. Nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/metrics/slow_calls.h"
#include "engine/daemon/scheduler_thread/worker_port.h"
#include "engine/daemon/workers/worker_output.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/segments/stream_pool.h"

namespace leat::daemon {

// A stream's slots, as workers get them.
struct SharedPool {
  std::uint32_t id = 0, generation = 0;
  const shm::StreamPool* pool = nullptr;
  std::string application;
};

struct WorkerMessage {
  std::vector<std::byte> packet;
  std::vector<shm::Fd> fds = {};
  std::optional<SharedPool> pool = {};  // instead of fds: its own, made when it goes
};
WorkerMessage pool_message(const SharedPool& pool);

class WorkerLink {
 public:
  struct Tokens {
    std::uint64_t socket = 0, output = 0;  // the event loop's
  };
  // max_unread_ns: a worker that leaves its messages unread for longer is to be ended. exhausted: called for each
  // attempt to send that lacked descriptors or memory.
  WorkerLink(EventLoop& loop, Tokens tokens, std::int64_t max_unread_ns, std::function<void()> exhausted)
      : loop_(loop), tokens_(tokens), max_unread_ns_(max_unread_ns), exhausted_(std::move(exhausted)) {}

  struct WorkerEnds {
    Fd socket, output;
  };
  // All anew, for a process to come. With `descriptors` it may send some.
  Result<WorkerEnds> open(bool descriptors);
  Status watch();
  void refuse_descriptors();
  void hang_up() { loop_.unwatch(socket_.get()); }  // nothing is read any more; the end is told otherwise
  void close(std::int64_t now);                     // the port stays
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(socket_); }

  [[nodiscard]] WorkerPort* port() const noexcept { return port_.get(); }
  void drop_port() noexcept { port_.reset(); }

  void send(WorkerMessage message);
  void flush();
  [[nodiscard]] bool all_sent() const noexcept { return queue_.empty(); }
  [[nodiscard]] bool has_sent(std::uint32_t pool) const noexcept;  // no message of this pool waits
  bool take_back(std::uint32_t pool);                              // true: its message had not gone yet
  // fds: nullptr where none are accepted.
  shm::Got receive(std::vector<std::byte>& packet, std::vector<shm::Fd>* fds);
  void pass_output_on(std::int64_t now);

  // When to flush or to pass on again; INT64_MAX: when the event loop says so.
  [[nodiscard]] std::int64_t resend_ns() const noexcept { return resend_ns_; }
  [[nodiscard]] std::int64_t output_ns() const noexcept { return output_.next_ns(); }
  [[nodiscard]] std::int64_t read_by_ns() const noexcept { return read_by_ns_; }  // the socket is full: it must by then
  void forgive_unread() noexcept { read_by_ns_ = INT64_MAX; }
  // It polls its sockets from so many places that to write to them, or to read, takes leatd's time. Once.
  [[nodiscard]] bool was_slow() noexcept;

 private:
  shm::Sent send_first();

  EventLoop& loop_;
  Tokens tokens_;
  std::int64_t max_unread_ns_;
  std::function<void()> exhausted_;
  shm::Fd socket_;
  WorkerOutput output_;
  TimedCalls calls_;  // on its two sockets
  std::unique_ptr<WorkerPort> port_;
  std::deque<WorkerMessage> queue_;
  std::int64_t resend_ns_ = INT64_MAX;
  std::int64_t read_by_ns_ = INT64_MAX;
};

}  // namespace leat::daemon
