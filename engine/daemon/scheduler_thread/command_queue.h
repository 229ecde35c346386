// What the control thread and the scheduler thread say to each other: two bounded queues (Boost.Lockfree, one producer
// and one consumer each) of small values. Objects named by pointer belong to the scheduler thread from the command that
// hands them over to the event that gives them back.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/core/scheduler.h"
#include "engine/daemon/scheduler_thread/granted_stream.h"
#include "leat/outcome.h"
#include "shm/src/client/client_port.h"

namespace leat::record {
class Ring;
}
namespace leat::daemon {

class WorkerPort;
struct LoopPlan;

inline constexpr std::uint32_t kQueueRoom = 8192;  // more than all clients, streams and partitions can have outstanding

struct Command {
  enum class Kind : std::uint8_t {
    add_client,     // client, pid, uid, port, apart
    remove_client,  // client: its connection is gone
    open_stream,    // client, stream, pool, granted
    close_stream,   // client, stream
    worker_ready,   // partition, pid, worker
    worker_lost,    // partition, pid: its process has ended (proven)
    worker_failed,  // partition, what: its end status; for the flight recorder, as the next
    user_refused,   // client: the user's record, what: the Refusal
    features_lost,  // edge: what lay in its memory, with no worker left that touches it
    set_estimates,  // estimates: valid until the next samples event
    replace_plan,   // plan: in the place of the one in force; given back as an earlier one, or itself
    record,         // ring: what happens is recorded there from now on; none: nowhere
    await_quiet,    // partition or application: told once no plan uses it and it holds nothing, or nothing is in flight
    give_up,        // application: what is in flight of it fails
    bell_back,      // client: calls on its bell are short again; the scheduler thread makes them
    look,           // a bell that it does not watch was rung: nothing but to look at the rings
    drain,          // refuse what comes, finish what is there
    stop            // leave the loop
  };
  Kind kind = Kind::stop;
  std::uint32_t client = 0, stream = 0, partition = core::kNone, edge = 0;
  std::uint32_t application = core::kNone;
  std::int64_t pid = 0;  // for the flight recorder, as is uid
  std::uint32_t uid = 0, what = 0;
  shm::ClientPort* port = nullptr;
  shm::StreamPool* pool = nullptr;
  bool apart = false;  // the control thread sees to its bell
  WorkerPort* worker = nullptr;
  const core::Estimates* estimates = nullptr;
  LoopPlan* plan = nullptr;
  record::Ring* ring = nullptr;
  GrantedStream granted;
};

struct SchedulerEvent {
  enum class Kind : std::uint8_t {
    client_violated,  // client, violation: close its connection
    client_drained,   // client: its port may be destroyed
    bell_apart,       // client: a call on its bell took long; the scheduler thread makes none any more
    ring,             // client: it sleeps, its bell is apart
    stream_opened,    // client, stream
    stream_refused,   // client, stream, pool: the core has no room
    stream_closed,    // client, stream, pool
    worker_released,  // partition: its port may be destroyed; excused: frames of one user are known to end workers
    worker_broken,    // partition: it reported nonsense, does not take batches or does not end one; kill it
    plan_in_force,    // plan: it has taken over
    plan_retired,     // plan: nothing uses it any more
    record_left,      // nothing is recorded into the ring before the one of the last record command
    quiet,            // partition or application: Command::Kind::await_quiet
    samples,          // the core's samples of the last second are in the sample queue
    drained           // nothing is in flight any more
  };
  Kind kind = Kind::drained;
  std::uint32_t client = 0, stream = 0, partition = core::kNone;
  std::uint32_t application = core::kNone;
  shm::Violation violation = shm::Violation::none;
  bool excused = false;
  shm::StreamPool* pool = nullptr;
  LoopPlan* plan = nullptr;
};

// One direction. Thread rule: one thread pushes, one pops.
template <class T>
class BoundedQueue {
 public:
  BoundedQueue();
  ~BoundedQueue();
  [[nodiscard]] bool push(const T& item) noexcept;
  [[nodiscard]] bool pop(T& out) noexcept;
  [[nodiscard]] bool empty() const noexcept;

 private:
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace leat::daemon
