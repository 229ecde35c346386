// The worker processes: starting them, handing them their channel and the streams' pools, noticing their end (SIGCHLD),
// starting them again. A worker that dies after it has served for a while is started again at once; one that dies on
// the way to "ready", or soon after it, waits, twice as long each time.
//
// Shares of one GPU are lost together, when one of them says that the device is: all are ended, and none starts before
// the last is gone. An edge in device memory is made by one producer; its descriptor stays here and outlives workers.
//
// Thread rule: the control thread. Nothing here blocks; messages a busy worker has not read yet wait in a queue, and so
// do those that cannot be sent for want of descriptors: they are tried again, and count for the worker when they have
// left. Descriptors of a pool are made when its message goes.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/clients/dear_calls.h"
#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/scheduler_thread/worker_port.h"
#include "engine/daemon/workers/worker_output.h"
#include "engine/worker/link/protocol.h"
#include "shm/src/protocol/protocol.h"
#include "shm/src/segments/stream_pool.h"
#include "tools/base/subprocess/process.h"

namespace leat::daemon {

enum class WorkerState : std::uint8_t { down = 0, starting = 1, up = 2, lost = 3 };  // as PartitionCounter::state

class Supervisor {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void worker_ready(std::uint32_t partition, WorkerPort* port, const worker::Ready& ready) = 0;
    virtual void worker_lost(std::uint32_t partition,
                             const std::string& how) = 0;  // after worker_ready; answer with released()
    // Every process of partitions that share a device is gone after a fault: what lay in its memory for this edge is
    // lost. Comes before any of them is started again.
    virtual void features_lost(std::uint32_t edge) = 0;
    // What ask_to_measure() asked for, of a worker that is up.
    virtual void worker_measured(std::uint32_t partition, const worker::Measured& measured) = 0;
    // Before it was ready; a line for each module that it complains of, which is opening() then.
    virtual void worker_failed(std::uint32_t partition, const std::string& line) = 0;
  };
  // The event loop's token of partition i's socket is first_token + i, of its output first_token + count() + i.
  // setups[i] is partition i's; its edges are indexes of `features`, which outlive this. `binary`: leat-worker.
  // `max_backoff_ns`: what the time before a new start grows to. `worker_start_timeout_ns`: a worker that is not ready
  // by then is ended, and has failed. `longest_unread_ns`: as is one that is ready and leaves its messages unread for
  // so long, while streams wait to be opened.
  Supervisor(EventLoop& loop, Listener& listener, std::uint64_t first_token, std::string binary,
             std::vector<worker::Setup> setups, std::span<const shm::FeaturePool> features, std::int64_t max_backoff_ns,
             std::int64_t worker_start_timeout_ns, std::int64_t longest_unread_ns);
  ~Supervisor();  // kills what still runs, waits for it

  Status start_all(std::int64_t now);
  void calibrated() noexcept;  // from now on workers start without calibration

  void on_ready(const Readiness& ready, std::int64_t now);  // one of its descriptors, by token
  void on_child(std::int64_t now);                          // a child has ended, or may have
  // Of the processes of a group of shares: all are ended, and start with these.
  void replace_environment(const std::string& group, const std::vector<std::pair<std::string, std::string>>& settings,
                           std::int64_t now);
  // Nobody uses the lost worker's port any more. excused: its end was no fault of the partition, which waits no longer
  // for it.
  void released(std::uint32_t partition, bool excused, std::int64_t now);
  void ask_to_measure(std::uint32_t partition, const worker::Measure& what);  // it is up, and has answered the last
  void kill(std::uint32_t partition);                    // SIGKILL; its end is noticed like any other
  [[nodiscard]] std::int64_t next_due() const noexcept;  // when advance() should be called; INT64_MAX: never
  void advance(std::int64_t now);                        // starts what is due, ends what loads for too long
  void stop_all();                                       // asks everybody to leave; no restarts from now on

  // `pool` stays valid until forget_pool. Only workers that serve its stream's application get it, those too that start
  // later: one that serves none of its frames has nothing to read or to write there.
  void add_pool(std::uint32_t id, std::uint32_t generation, const shm::StreamPool& pool,
                const std::string& application);
  void forget_pool(std::uint32_t id);
  // Every worker that gets it has been told of it: frames in it may be sent to them.
  [[nodiscard]] bool pool_known(std::uint32_t id) const noexcept;

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }
  // The module of its setup that a starting worker opens, or opened last; none: it has not come to one.
  std::optional<std::uint32_t> opening(std::uint32_t partition) const noexcept { return workers_[partition].opening; }
  const worker::MeasuringProgress& measuring(std::uint32_t partition) const noexcept {
    return workers_[partition].measuring;
  }
  WorkerState state(std::uint32_t partition) const noexcept { return workers_[partition].state; }
  // 0: it has no process now.
  pid_t pid(std::uint32_t partition) const noexcept { return std::max(0, workers_[partition].process.pid()); }
  std::uint32_t restarts(std::uint32_t partition) const noexcept { return workers_[partition].restarts; }
  std::uint32_t failures(std::uint32_t partition) const noexcept { return workers_[partition].failures; }
  std::int64_t backoff_ns(std::uint32_t partition) const noexcept {  // how long it waits before it starts again
    return workers_[partition].state == WorkerState::lost ? workers_[partition].backoff_ns : 0;
  }
  std::string in_a_while(std::uint32_t partition) const;  // " in 400 ms", when that is; or nothing
  // Its end is that of a device that others still hold after a fault: it starts again with all that share it, and has
  // not failed. For worker_start_timeout_ns from the first time on.
  [[nodiscard]] bool waits_for_device(std::uint32_t partition, std::int64_t now) const noexcept;
  // As its worker said last; no name: it has none, or is not up.
  const worker::DeviceFacts& device(std::uint32_t partition) const noexcept { return workers_[partition].device; }
  const worker::Setup& setup(std::uint32_t partition) const noexcept { return workers_[partition].setup; }
  // Why it could not start, one line; empty: it could.
  const std::string& why_down(std::uint32_t partition) const noexcept { return workers_[partition].why_down; }
  const std::string& last_end(std::uint32_t partition) const noexcept { return workers_[partition].last_end; }
  worker::Sandbox sandbox(std::uint32_t partition) const noexcept { return workers_[partition].sandbox; }
  bool all_down() const noexcept;

 private:
  struct Pool {
    std::uint32_t id, generation;
    const shm::StreamPool* pool;
    std::string application;
  };
  struct Message {
    std::vector<std::byte> packet;
    std::vector<shm::Fd> fds;
    std::optional<Pool> pool{};  // instead of fds: its own, made when it goes
  };
  struct Worker {
    worker::Setup setup;
    WorkerState state = WorkerState::down;
    subprocess::Process process;
    shm::Fd socket;
    WorkerOutput output;
    TimedCalls calls;  // on its two sockets
    std::unique_ptr<WorkerPort> port;
    std::deque<Message> outbox;
    std::optional<std::uint32_t> opening;  // the module it opens, or opened last
    worker::MeasuringProgress measuring;   // of that module; max 0: it loads
    std::optional<std::uint32_t> asked;    // the module that it was asked to measure again
    std::optional<worker::Ready> ready;    // it is, and is announced once the outbox is empty
    std::int64_t resend_ns = INT64_MAX;    // its first message could not be sent for want of descriptors
    std::int64_t read_by_ns = INT64_MAX;   // the socket is full: it must read by then
    struct Complaint {
      std::optional<std::uint32_t> opening;
      std::string line;
    };
    std::vector<Complaint> complaints;  // what it said before it failed, each once
    std::string last_line;              // why it was ended
    std::string last_end;               // how its last process ended
    std::string why_down;               // why its last process was never ready; until one is
    worker::Sandbox sandbox = worker::Sandbox::off;
    worker::DeviceFacts device;
    std::uint32_t restarts = 0, failures = 0;  // failures: in a row; a long life ends the row
    std::int64_t ready_ns = 0, backoff_ns = 0, due_ns = INT64_MAX;
    std::int64_t ready_by_ns = INT64_MAX;  // while it starts
  };

  Status start(std::uint32_t partition, std::int64_t now);
  Status spawn(Worker& w, int child_socket, int output);
  void on_socket(std::uint32_t partition, const Readiness& ready, std::int64_t now);
  void on_output(std::uint32_t partition, std::int64_t now);
  void end_late(std::uint32_t partition, std::int64_t now);
  void end_dear(std::uint32_t partition);
  static bool serves(const Worker& w, const std::string& application) noexcept;
  Status send_models(std::uint32_t partition);
  Status send_edges(std::uint32_t partition);
  void choose_makers(Worker& w);
  Status send_edge_memory(std::uint32_t partition, std::uint32_t index);
  Status edge_made(std::uint32_t partition, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds);
  void lose_group(const std::string& group, std::int64_t now);
  void end_lost_group(const std::string& group, std::int64_t now);
  void send(std::uint32_t partition, Message message);
  void flush(std::uint32_t partition);
  shm::Sent send_first(Worker& w);
  static Message pool_message(const Pool& pool);
  void on_exit(std::uint32_t partition, std::int64_t now);
  void announce_ready(std::uint32_t partition, std::int64_t now);
  void handle(std::uint32_t partition, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
              std::int64_t now);
  [[nodiscard]] std::int64_t backoff_after(std::uint32_t failures) const noexcept;

  EventLoop& loop_;
  Listener& listener_;
  std::uint64_t first_token_;
  std::string binary_;
  std::span<const shm::FeaturePool> features_;
  std::int64_t max_backoff_ns_, worker_start_timeout_ns_, longest_unread_ns_;
  std::vector<Worker> workers_;
  std::vector<Pool> pools_;
  std::vector<shm::Fd> edge_memory_;                   // [edge] in device memory: what its maker sent, for all others
  std::set<std::string> lost_groups_;                  // of devices: no member starts until all have ended
  std::map<std::string, std::int64_t> first_lost_ns_;  // [group] that was lost at all
  bool stopping_ = false;
};

}  // namespace leat::daemon
