// The interface between the core and its schedulers: a ComponentScheduler is one object for each component of the plan
// (model.h), and it sees and touches nothing else. Leat's own are the rooms of this folder, the papers' are in
// engine/papers.
//
// The life of a task, in the order in which the operations are called:
//
//   request submitted         admit          may it enter at all?
//   for each of its tasks,    enqueue        into which queue?
//     when its turn comes
//   at the end of each event, for every queue with new tasks, as long as it has work:
//                             offer          which consumer of it is asked first?
//                             next           that consumer's partition: start one batch, wait until, or idle
//     and for every partition that became free, as long as something starts there:
//                             next
//     and once for a queue with work that nobody took:
//                             leftover
//   a batch                   started        it has been sent          ended    a stage's end has been proven
//   a task that leaves        left           its queue, whatever for    withdraw a booked task is given up
//   a partition               partition      is up, or gone
//   a stage that is not the last one has ended, where the batch does not go on by itself:
//                             passed
//   a new plan                the constructor of the scheduler that takes over; tasks not sent are enqueued there anew
//
// Every operation but next() may be left out; its default stands beside it. What a scheduler reads is constant
// (StateView); what it may do is in Operations. It owns its own state, and nobody else does.
//
// Integrity does not depend on a scheduler. Whatever it leaves undecided, the core answers when it is worthless:
// a task in a queue, in a batch being formed or booked, by its give-up time. A partition that is down or full cannot be
// started on. What it starts, the core holds against the queues and the machine.
//
// Unstable: operations come and go with the schedulers.
#pragma once

#include <algorithm>
#include <bit>
#include <span>

#include "engine/core/ledger/ledger.h"
#include "engine/core/load/load_statistics.h"
#include "engine/core/load/paying_batches.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/policy/policy.h"
#include "engine/core/queue/task_queues.h"
#include "engine/core/snapshot.h"

namespace leat::core {

// What a scheduler reads. In its constructor only the model and the queues mean anything.
struct StateView {
  const Model& model;
  const TaskQueues& queues;
  const LoadStatistics& load;
  const PayingBatches& paying;
  const Ledger& ledger;
  const Machine& machine;
  const Pool<Task>& tasks;
  const TimeNs& now;

  [[nodiscard]] const Topology& topology() const noexcept { return model.topology(); }
  [[nodiscard]] const RouteSpec& route(RouteId r) const noexcept { return model.topology().routes[r]; }
  // With whom a task may share a batch: those that take more than planned, and those of users who have ended
  // partitions, ride apart from others' (ledger/shares.h, quarantine.h). So does a request that was running when a
  // partition was lost, so that the next loss convicts one.
  [[nodiscard]] Company company(TaskId t) const noexcept {
    const Request& r = ledger.request(tasks[t].request);
    return r.deaths > 0 ? Company::nobody : r.company;
  }
  [[nodiscard]] std::uint32_t user(TaskId t) const noexcept {
    return ledger.stream(ledger.request(tasks[t].request).stream).config.user;
  }
  // Its bookings are its own. (Reservations look at users alone: with one, they book as ever.)
  [[nodiscard]] bool lone(TaskId t) const noexcept {
    return ledger.request(tasks[t].request).company != Company::anybody;
  }
  // The task may not ride in the batch that forms there.
  [[nodiscard]] bool apart(const TaskQueue& queue, TaskId t) const noexcept {
    if (queue.forming.tasks == 0) return false;
    const Company mine = company(t), theirs = company(queue.forming.first);
    if (mine == Company::anybody && theirs == Company::anybody) return false;
    return mine != theirs || mine == Company::nobody || user(t) != user(queue.forming.first);
  }
  // Takes a batch: it is up, and holds no more than it may.
  [[nodiscard]] bool idle(PartitionId p) const noexcept { return machine.partition(p).takes; }
  // When a batch begins that is sent there now.
  [[nodiscard]] TimeNs start_ns(PartitionId p) const noexcept {
    const Partition& to = machine.partition(p);
    return to.held > 0 ? std::max(now, to.free_ns - to.overlap_ns) : now;
  }
  [[nodiscard]] std::uint8_t top_class(const TaskQueue& queue) const noexcept {  // of a queue with tasks
    return static_cast<std::uint8_t>(std::bit_width(queue.classes) - 1);
  }
  // The queue's first idle consumer that runs nothing; else, where batches are sent ahead, the one that is free first.
  // kNone: none takes a batch.
  [[nodiscard]] ConsumerId idle_consumer(const TaskQueue& queue) const noexcept {
    if (queue_ahead == 0) return queues.idle_consumer(queue);
    ConsumerId best = kNone;
    for (ConsumerId c = queue.first_consumer; c < queue.first_consumer + queue.consumers; ++c) {
      const Partition& p = machine.partition(queues.consumer(c).partition);
      if (!p.takes) continue;
      if (p.held == 0) return c;
      if (best == kNone || p.free_ns < machine.partition(queues.consumer(best).partition).free_ns) best = c;
    }
    return best;
  }

  std::uint32_t queue_ahead;  // batches a partition may hold behind the one it runs
};

// What a scheduler may do. Names of tasks that are gone are an error of ours (they abort).
class Operations {
 public:
  // The task's request is given up: all its tasks leave, also those of other queues. Looking at a queue begins anew
  // after it.
  virtual void drop(TaskId task, Reason reason) noexcept = 0;
  virtual void take(TaskId task) noexcept = 0;  // from its queue into that queue's next batch
  // Sends what has been taken, as one batch of the consumer's route; it starts at `start` on the first partition of
  // `path`. Returns the batch.
  virtual std::uint32_t start(QueueId queue, ConsumerId consumer, TimeNs start, const Path& path) noexcept = 0;
  virtual void canary(std::uint32_t batch) noexcept = 0;  // just started: what it takes sets its module's latency scale
  virtual void wake(QueueId queue, TimeNs at) noexcept = 0;                  // ask for this queue again then
  virtual void wake_at(TimeNs at) noexcept = 0;                              // call advance() then, at the latest
  virtual void keep_idle(PartitionId partition, TimeNs until) noexcept = 0;  // ask again then; 0: no longer
  virtual void idled_on_purpose() noexcept = 0;                              // counted
  virtual void ask(PartitionId partition) noexcept = 0;                      // next() is wanted there
  virtual void ask_queue(QueueId queue) noexcept = 0;                        // offer() is wanted there

  // ---- for schedulers that reserve ahead ----
  virtual void book(TaskId task) noexcept = 0;    // out of its queue; nobody's but the scheduler's until sent
  virtual void unbook(TaskId task) noexcept = 0;  // a booked task that has lost its place: to a queue again
  virtual void retry(TaskId task) noexcept = 0;   // a booked task whose partition is gone: to a queue again, or failed
  // Booked tasks, linked by next_in_batch, as stage k of the route on one partition, from now on for `run`.
  virtual std::uint32_t send(RouteId route, std::uint32_t stage, PartitionId partition, std::span<const TaskId> tasks,
                             TimeNs run) noexcept = 0;
  virtual void transfer(TaskId task, RouteId route, std::uint32_t stage, PartitionId from, PartitionId to,
                        TimeNs start) noexcept = 0;

 protected:
  ~Operations() = default;
};

class ComponentScheduler {
 public:
  ComponentScheduler(const StateView& view, Operations& core, const Component& component)
      : view_(view), core_(core), component_(component) {}
  virtual ~ComponentScheduler() = default;
  ComponentScheduler(const ComponentScheduler&) = delete;
  ComponentScheduler& operator=(const ComponentScheduler&) = delete;

  virtual bool admit(std::uint32_t application) noexcept { return application != kNone; }  // all that exist
  // Whether a task that cannot be in time any more is worth running. Default: no, the core answers it.
  [[nodiscard]] virtual bool keeps_late() const noexcept { return false; }
  // Whether it promises the partitions' time ahead, by the plan. Who does not keep to the plan then has one task at a
  // time there.
  [[nodiscard]] virtual bool books() const noexcept { return false; }
  // Whether a queue's tasks are bound to its one consumer. Default: no; then a lost consumer's tasks just wait.
  [[nodiscard]] virtual bool binds() const noexcept { return false; }
  virtual QueueId enqueue(TaskId task) noexcept { return view_.queues.first(view_.tasks[task].module); }
  virtual void left(TaskId) noexcept {}
  virtual ConsumerId offer(QueueId queue) noexcept { return view_.idle_consumer(view_.queues[queue]); }
  // Starts at most one batch on the partition. False: nothing (more) to start.
  virtual bool next(PartitionId partition) noexcept = 0;
  virtual void leftover(QueueId, ConsumerId) noexcept {}  // the consumer that did not want it, or kNone
  virtual void started(std::uint32_t) noexcept {}         // a batch; called by start() and send()
  // A batch's stage, how long it ran, and whether others' may be expected to run like it.
  virtual void ended(std::uint32_t, TimeNs, bool) noexcept {}
  virtual void freed(std::uint32_t) noexcept {}  // a batch is over, whatever became of it
  // A task's stage, not its last, has ended in that batch. False: it has nowhere to go and begins anew in a queue.
  virtual bool passed(TaskId, std::uint32_t, bool) noexcept { return false; }
  virtual void withdraw(TaskId) noexcept {}
  virtual void forget(TaskId) noexcept {}  // a task of a batch that was lost
  virtual void partition(PartitionId, bool) noexcept {}
  virtual void estimates(const Estimates&) noexcept {}
  virtual void forget_scale() noexcept {}  // what batches took was one user's doing: as profiled
  virtual void advance() noexcept {}       // time has passed
  [[nodiscard]] virtual TimeNs next_timer() const noexcept { return kNever; }
  virtual void audit() const {}  // tests: its own invariants
  // What of it later decisions depend on (snapshot.h); tasks, queues and the machine are there already.
  virtual void visit_state(Snapshot&) {}

 protected:
  const StateView view_;
  Operations& core_;
  const Component& component_;
};

}  // namespace leat::core
