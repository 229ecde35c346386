// The worker processes: starting them, handing them their channel and the streams' pools, noticing their end by pidfd,
// starting them again. A worker that dies after it was ready is started again at once; one that dies on the way there
// waits, twice as long each time.
//
// Thread rule: the control thread. Nothing here blocks; messages a busy worker has not read yet wait in a queue.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/event_loop.h"
#include "engine/daemon/worker_port.h"
#include "engine/worker/protocol.h"
#include "shm/src/stream_pool.h"

namespace leat::daemon {

enum class WorkerState : std::uint8_t { down = 0, starting = 1, up = 2, lost = 3 };  // as PartitionCounter::state

class Supervisor {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void worker_ready(std::uint32_t partition, WorkerPort* port, const worker::Ready& ready) = 0;
    virtual void worker_lost(std::uint32_t partition, const std::string& how) = 0;  // after worker_ready; answer with released()
    virtual void worker_failed(std::uint32_t partition, const std::string& line) = 0;  // before it was ready
  };
  struct Tokens {
    std::uint64_t socket, process;  // event loop tokens of partition i are these + i
  };

  // setups[i] is partition i's; its edges are indexes of `features`, which outlive this. `daemon_bell`: what workers ring.
  // `binary`: leat-worker.
  Supervisor(EventLoop& loop, Listener& listener, Tokens tokens, std::string binary, std::vector<worker::Setup> setups, std::span<const shm::FeaturePool> features, int daemon_bell);
  ~Supervisor();  // kills what still runs, waits for it

  Status start_all();
  void calibrated() noexcept;  // from now on workers start without calibration

  void on_socket(std::uint32_t partition, const Readiness& ready);
  void on_exit(std::uint32_t partition, std::int64_t now);
  void released(std::uint32_t partition, std::int64_t now);  // nobody uses the lost worker's port any more
  void kill(std::uint32_t partition);                   // SIGKILL; its end is noticed like any other
  [[nodiscard]] std::int64_t next_due() const noexcept;      // when advance() should be called; INT64_MAX: never
  void advance(std::int64_t now);                            // starts what is due
  void stop_all();                                           // asks everybody to leave; no restarts from now on

  // `pool` stays valid until forget_pool. Workers that start later get it too.
  void add_pool(std::uint32_t id, std::uint32_t generation, const shm::StreamPool& pool);
  void forget_pool(std::uint32_t id);

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }
  WorkerState state(std::uint32_t partition) const noexcept { return workers_[partition].state; }
  pid_t pid(std::uint32_t partition) const noexcept { return workers_[partition].pid; }
  std::uint32_t restarts(std::uint32_t partition) const noexcept { return workers_[partition].restarts; }
  bool all_down() const noexcept;

 private:
  struct Message {
    std::vector<std::byte> packet;
    std::vector<shm::Fd> fds;
  };
  struct Worker {
    worker::Setup setup;
    WorkerState state = WorkerState::down;
    pid_t pid = 0;
    shm::Fd process, socket;
    std::unique_ptr<WorkerPort> port;
    std::deque<Message> outbox;
    std::string last_line;          // what it said before it failed
    std::uint32_t restarts = 0, failures = 0;  // failures: in a row, before it was ready
    std::int64_t due_ns = INT64_MAX;
  };
  struct Pool {
    std::uint32_t id, generation;
    const shm::StreamPool* pool;
  };

  Status start(std::uint32_t partition);
  Status spawn(Worker& w, int child_socket);
  Status send_edges(std::uint32_t partition);
  void send(std::uint32_t partition, Message message, bool counted);
  void flush(std::uint32_t partition);
  Result<Message> pool_message(const Pool& pool) const;
  void handle(std::uint32_t partition, const std::vector<std::byte>& packet);

  EventLoop& loop_;
  Listener& listener_;
  Tokens tokens_;
  std::string binary_;
  std::span<const shm::FeaturePool> features_;
  int daemon_bell_;
  std::vector<Worker> workers_;
  std::vector<Pool> pools_;
  bool stopping_ = false;
};

}  // namespace leat::daemon
