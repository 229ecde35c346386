// Task queues: a policy says at set-up which there are and which consumers take from each, and on a task's arrival
// which it goes to; a task's life is the core's.
//
// A queue's tasks are of one module. With late binding a module has one queue, from which all its partitions take; with
// early binding one per (module, partition). A consumer is one (partition, route) that takes batches from one queue; a
// queue's consumers stand in order of preference.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/ledger/ledger.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/queue/deadline_queue.h"
#include "engine/core/snapshot.h"

namespace leat::core {

using QueueId = std::uint32_t;
using ConsumerId = std::uint32_t;

struct QueueConsumer {
  PartitionId partition = 0;
  RouteId route = 0;
  QueueId queue = 0;
  const TimeNs* run_ns = nullptr;   // [b]: all stages and transfers, b = 0..route.batch
  const TimeNs* safe_ns = nullptr;  // the same from p99
};

struct TaskQueue {
  ModuleId module = 0;
  ConsumerId first_consumer = 0;
  std::uint32_t consumers = 0;
  std::uint32_t idle_words = 0;  // offset of its bit set of available consumers
  std::array<DeadlineQueue, kLevels> by_deadline;
  std::array<ArrivalList, kLevels> arrivals;
  std::array<std::uint32_t, kLevels> replaced{};  // of them, those with Task::turn_ns
  std::uint32_t classes = 0;                      // bit: that level has tasks
  std::uint32_t tasks = 0, items = 0;             // queued, not counting `forming`
  TaskList forming;                               // taken, not sent yet
  TimeNs wake_ns = kNever;                        // its policy wants to be asked again then
  bool dirty = false;
};

class TaskQueues {
 public:
  explicit TaskQueues(const Model& model);

  // ---- set-up ----
  // One more queue of that module; its consumers' queue and tables are filled in.
  QueueId add(const Model& model, ModuleId module, std::span<const QueueConsumer> consumers);

  // ---- to read ----
  [[nodiscard]] const TaskQueue& operator[](QueueId id) const noexcept { return queues_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return queues_.size(); }
  [[nodiscard]] const QueueConsumer& consumer(ConsumerId id) const noexcept { return consumers_[id]; }
  [[nodiscard]] std::size_t consumers() const noexcept { return consumers_.size(); }
  [[nodiscard]] QueueId first(ModuleId m) const noexcept { return of_module_[m].first; }
  [[nodiscard]] std::uint32_t count(ModuleId m) const noexcept { return of_module_[m].count; }
  [[nodiscard]] const std::vector<ConsumerId>& of_partition(PartitionId p) const noexcept { return of_partition_[p]; }
  [[nodiscard]] ConsumerId idle_consumer(
      const TaskQueue& queue) const noexcept;  // the first that can take a batch; kNone

  // ---- to change ----
  [[nodiscard]] TaskQueue& change(QueueId id) noexcept { return queues_[id]; }
  void insert(Pool<Task>& tasks, TaskId id, QueueId queue) noexcept;
  void erase(Pool<Task>& tasks, TaskId id) noexcept;                // out of its queue
  void form(Pool<Task>& tasks, QueueId queue, TaskId id) noexcept;  // erased before; into the queue's next batch
  void unform(Pool<Task>& tasks, QueueId queue, TaskId id) noexcept;
  void set_idle(PartitionId partition, bool idle) noexcept;

  void audit(const Pool<Task>& tasks) const;
  void visit_state(Snapshot& state) { state(queues_, idle_); }

 private:
  struct OfModule {
    QueueId first = 0;
    std::uint32_t count = 0;
  };
  std::vector<TaskQueue> queues_;
  std::vector<QueueConsumer> consumers_;
  std::vector<OfModule> of_module_;
  std::vector<std::vector<ConsumerId>> of_partition_;
  std::vector<std::uint64_t> idle_;
};

}  // namespace leat::core
