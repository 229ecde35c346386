// The worker processes: starting them, handing them what they work on and the streams' pools, noticing their end
// (SIGCHLD), starting them again (restart_timer.h). How leatd talks with one is worker_link.h; where features lie
// between stages edge_memory.h.
//
// Shares of one GPU are lost together, when one of them says that the device is: all are ended, and none starts before
// the last is gone.
//
// Thread rule: the control thread. Nothing here blocks.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/workers/edge_memory.h"
#include "engine/daemon/workers/restart_timer.h"
#include "engine/daemon/workers/worker_link.h"
#include "engine/worker/link/protocol.h"
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
    // What was to end (retire), or was on trial and has failed, is gone; its slot is free.
    virtual void worker_gone(std::uint32_t partition) = 0;
    // Before it was ready; a line for each module that it complains of, which is opening() then.
    virtual void worker_failed(std::uint32_t partition, const std::string& line) = 0;
    // A message to a worker lacked descriptors or memory; it is tried again.
    virtual void send_exhausted() = 0;
  };
  // How long a worker may take before it is ended, or waits before it starts again.
  struct Patience {
    std::int64_t max_backoff_ns = 0;    // what the time before a new start grows to
    std::int64_t start_timeout_ns = 0;  // until it is ready; else it has failed
    std::int64_t unread_ns = 0;         // that it leaves its messages unread, while streams wait to be opened
  };
  // At most `slots` workers, whose numbers are called partitions here: two of one partition, an old and a new one, have
  // two. The event loop's token of number i's socket is first_token + i, of its output first_token + count() + i.
  // setups[i] is number i's; its edges are indexes of `features`, which outlive this. `binary`: leat-worker.
  Supervisor(EventLoop& loop, Listener& listener, std::uint64_t first_token, std::string binary, std::uint32_t slots,
             std::vector<worker::Setup> setups, std::span<const shm::FeaturePool> features, Patience patience);
  ~Supervisor();  // kills what still runs, waits for it

  Status start_all(std::int64_t now);
  void calibrated() noexcept;  // from now on workers start without calibration

  // Another one, on a number that is free. It is on trial: where it ends it is gone, until it is settled.
  Status start_beside(std::uint32_t partition, worker::Setup setup, std::int64_t now);
  void settle(std::uint32_t partition) noexcept;
  // It is to end and not to come again: asked, and killed where it does not listen. Nothing is sent to it any more.
  void retire(std::uint32_t partition, std::int64_t now);
  [[nodiscard]] bool in_use(std::uint32_t partition) const noexcept { return of(partition).used; }

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
  std::optional<std::uint32_t> opening(std::uint32_t partition) const noexcept { return of(partition).start.opening; }
  const worker::MeasuringProgress& measuring(std::uint32_t partition) const noexcept {
    return of(partition).start.measuring;
  }
  WorkerState state(std::uint32_t partition) const noexcept { return of(partition).state; }
  // 0: it has no process now.
  pid_t pid(std::uint32_t partition) const noexcept { return std::max(0, of(partition).process.pid()); }
  std::uint32_t restarts(std::uint32_t partition) const noexcept { return of(partition).restart.restarts(); }
  std::uint32_t failures(std::uint32_t partition) const noexcept { return of(partition).restart.failures(); }
  std::int64_t backoff_ns(std::uint32_t partition) const noexcept {  // how long it waits before it starts again
    return of(partition).state == WorkerState::lost ? of(partition).restart.backoff_ns() : 0;
  }
  std::int64_t next_start_ns(std::uint32_t partition) const noexcept { return of(partition).restart.due_ns(); }
  std::string in_a_while(std::uint32_t partition) const;  // " in 400 ms", when that is; or nothing
  // Its end is that of a device that others still hold after a fault: it starts again with all that share it, and has
  // not failed. For Patience::start_timeout_ns from the first time on.
  [[nodiscard]] bool waits_for_device(std::uint32_t partition, std::int64_t now) const noexcept;
  // As its worker said last; no name: it has none, or is not up.
  const worker::DeviceFacts& device(std::uint32_t partition) const noexcept { return of(partition).device; }
  const worker::Setup& setup(std::uint32_t partition) const noexcept { return of(partition).setup; }
  // Its worker has said that this module of its setup answers values that are infinite or no numbers.
  bool not_finite(std::uint32_t partition, std::uint32_t module) const noexcept {
    return of(partition).not_finite.contains(module);
  }
  // Why it could not start, one line; empty: it could.
  const std::string& why_down(std::uint32_t partition) const noexcept { return of(partition).why_down; }
  const std::string& last_end(std::uint32_t partition) const noexcept { return of(partition).last_end; }
  // 256 and more: the signal that ended it. Empty: none has ended.
  std::optional<std::uint32_t> end_status(std::uint32_t partition) const noexcept { return of(partition).end_status; }
  worker::Sandbox sandbox(std::uint32_t partition) const noexcept { return of(partition).sandbox; }
  bool all_down() const noexcept;

 private:
  // A worker on its way to "ready".
  struct Start {
    std::optional<std::uint32_t> opening;  // the module it opens, or opened last
    worker::MeasuringProgress measuring;   // of that module; most 0: it loads
    std::optional<worker::Ready> ready;    // it is, and is announced once all it was sent has gone
    std::int64_t ready_by_ns = INT64_MAX;
    struct Complaint {
      std::optional<std::uint32_t> opening;
      std::string line;
    };
    std::vector<Complaint> complaints;  // what it said before it failed, each once
    std::string why_ended;              // by leatd
  };
  struct Worker {
    worker::Setup setup;
    WorkerLink link;
    RestartTimer restart;
    WorkerState state = WorkerState::down;
    subprocess::Process process = {};
    Start start = {};
    bool used = false, on_trial = false, ends = false;
    std::int64_t killed_ns = INT64_MAX;       // ends: when it is killed
    std::optional<std::uint32_t> asked = {};  // the module that it was asked to measure again
    std::int64_t ready_ns = 0;
    std::string last_end = {};  // how its last process ended: "was killed by signal 9 (Killed)"
    std::optional<std::uint32_t> end_status = {};
    std::string why_down = {};  // why its last process was never ready; until one is
    worker::Sandbox sandbox = worker::Sandbox::off;
    worker::DeviceFacts device = {};
    std::set<std::uint32_t> not_finite = {};  // modules of its setup that answer what is no number
  };
  // Partitions that share one device.
  struct Group {
    bool lost = false;  // no member starts until all have ended
    std::int64_t first_lost_ns = 0;
  };

  const Worker& of(std::uint32_t partition) const noexcept { return workers_[partition]; }

  // Starting.
  Status start(std::uint32_t partition, std::int64_t now);
  Status spawn(Worker& w, const WorkerLink::WorkerEnds& ends);
  Status send_all(Worker& w);
  Status send_models(Worker& w);
  static bool serves(const Worker& w, const std::string& application) noexcept;
  void announce_ready(std::uint32_t partition, std::int64_t now);

  // What it says.
  void on_socket(std::uint32_t partition, std::int64_t now);
  void handle(std::uint32_t partition, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
              std::int64_t now);
  Status take_message(std::uint32_t partition, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
                      std::int64_t now);
  // False: it makes no sense now.
  bool take_while_starting(std::uint32_t partition, worker::ControlType type, const std::vector<std::byte>& packet,
                           std::int64_t now);
  bool take_memory(std::uint32_t partition, const std::vector<std::byte>& packet);
  bool take_not_finite(std::uint32_t partition, const std::vector<std::byte>& packet);
  bool take_while_up(std::uint32_t partition, worker::ControlType type, const std::vector<std::byte>& packet);
  void complain(Worker& w, std::string line);
  Status pass_edge_on(std::uint32_t partition, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds);

  // Ending.
  void on_exit(std::uint32_t partition, std::int64_t now);
  void tell_failed(std::uint32_t partition);
  void end_late(std::uint32_t partition, std::int64_t now);
  void end_slow(std::uint32_t partition);
  void end_retired(std::uint32_t partition, std::int64_t now);
  [[nodiscard]] static bool retiring(const Worker& w) noexcept { return w.ends; }
  [[nodiscard]] bool is_lost(const std::string& group) const noexcept;
  void lose_group(const std::string& group, std::int64_t now);
  void end_lost_group(const std::string& group, std::int64_t now);

  Listener& listener_;
  std::uint64_t first_token_;
  std::string binary_;
  Patience patience_;
  EdgeMemory edges_;
  Fd turns_;  // MeasuringTurn's file; none: they measure at the same time
  std::vector<Worker> workers_;
  std::vector<SharedPool> pools_;
  std::map<std::string, Group> groups_;  // of those that were lost at all
  bool stopping_ = false;
};

}  // namespace leat::daemon
