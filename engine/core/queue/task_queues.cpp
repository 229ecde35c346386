#include "engine/core/queue/task_queues.h"

#include <bit>

namespace leat::core {

TaskQueues::TaskQueues(const Model& model)
    : of_module_(model.topology().modules.size()), of_partition_(model.topology().partitions.size()) {}

QueueId TaskQueues::add(const Model& model, ModuleId module, std::span<const QueueConsumer> consumers) {
  const auto id = static_cast<QueueId>(queues_.size());
  if (of_module_[module].count++ == 0) of_module_[module].first = id;
  check(of_module_[module].first + of_module_[module].count == id + 1, "a module's queues stand side by side");
  TaskQueue queue;
  queue.module = module;
  queue.first_consumer = static_cast<ConsumerId>(consumers_.size());
  queue.consumers = static_cast<std::uint32_t>(consumers.size());
  queue.idle_words = static_cast<std::uint32_t>(idle_.size());
  idle_.resize(idle_.size() + (consumers.size() + 63) / 64, 0);
  queues_.push_back(queue);
  for (QueueConsumer s : consumers) {
    s.queue = id;
    s.run_ns = model.run_ns(s.route);
    s.safe_ns = model.safe_ns(s.route);
    of_partition_[s.partition].push_back(static_cast<ConsumerId>(consumers_.size()));
    consumers_.push_back(s);
  }
  return id;
}

ConsumerId TaskQueues::idle_consumer(const TaskQueue& queue) const noexcept {
  for (std::uint32_t w = 0; w * 64 < queue.consumers; ++w) {
    const std::uint64_t word = idle_[queue.idle_words + w];
    if (word != 0) return queue.first_consumer + w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return kNone;
}

void TaskQueues::insert(Pool<Task>& tasks, TaskId id, QueueId at) noexcept {
  Task& t = tasks[id];
  TaskQueue& queue = queues_[at];
  t.queue = at;
  t.state = TaskState::queued;
  queue.by_deadline[t.level].insert(tasks.data(), id);
  queue.arrivals[t.level].push(tasks.data(), id);
  if (t.turn_ns > 0) ++queue.replaced[t.level];
  queue.classes |= 1u << t.level;
  ++queue.tasks;
  queue.items += t.items;
}

void TaskQueues::erase(Pool<Task>& tasks, TaskId id) noexcept {
  const Task& t = tasks[id];
  TaskQueue& queue = queues_[t.queue];
  queue.by_deadline[t.level].erase(tasks.data(), id);
  queue.arrivals[t.level].erase(tasks.data(), id);
  if (t.turn_ns > 0) --queue.replaced[t.level];
  if (queue.by_deadline[t.level].empty()) queue.classes &= ~(1u << t.level);
  --queue.tasks;
  queue.items -= t.items;
}

void TaskQueues::form(Pool<Task>& tasks, QueueId at, TaskId id) noexcept {
  Task& t = tasks[id];
  TaskList& forming = queues_[at].forming;
  t.queue = kNone;
  t.next_in_batch = kNone;
  t.batch = at;  // the queue it forms at, until it is sent
  (forming.last == kNone ? forming.first : tasks[forming.last].next_in_batch) = id;
  forming.last = id;
  ++forming.tasks;
  forming.items += t.items;
}

void TaskQueues::unform(Pool<Task>& tasks, QueueId at, TaskId id) noexcept {
  TaskList& list = queues_[at].forming;
  TaskId previous = kNone;
  for (TaskId t = list.first; t != id; t = tasks[t].next_in_batch) previous = t;
  (previous == kNone ? list.first : tasks[previous].next_in_batch) = tasks[id].next_in_batch;
  if (list.last == id) list.last = previous;
  --list.tasks;
  list.items -= tasks[id].items;
}

void TaskQueues::set_idle(PartitionId id, bool idle) noexcept {
  for (ConsumerId s : of_partition_[id]) {
    const TaskQueue& queue = queues_[consumers_[s].queue];
    const std::uint32_t bit = s - queue.first_consumer;
    std::uint64_t& word = idle_[queue.idle_words + bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    word = idle ? word | mask : word & ~mask;
  }
}

void TaskQueues::audit(const Pool<Task>& tasks) const {
  for (const TaskQueue& queue : queues_) {
    std::size_t queued = 0;
    for (std::uint32_t c = 0; c < kLevels; ++c) {
      const std::size_t n = queue.by_deadline[c].audit(tasks.data());
      check(n != kNone && (n > 0) == ((queue.classes >> c & 1) != 0), "a queue's order");
      queued += n;
    }
    check(queued == queue.tasks, "a queue's number of tasks");
  }
}

}  // namespace leat::core
