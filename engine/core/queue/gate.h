// Before the queues: tasks of users who have ended partitions (ledger/quarantine.h) pass one at a time, whatever
// scheduler is in force behind it, and those of dear ones (shares.h) where time is promised ahead. Who waits stands by
// deadline.
#pragma once

#include "engine/core/queue/deadline_queue.h"
#include "engine/core/queue/pool.h"

namespace leat::core {

class Gate {
 public:
  [[nodiscard]] TaskId front() const noexcept { return waiting_.front(); }  // kNone: nobody waits
  [[nodiscard]] TaskId next() const noexcept { return waiting_.back(); }    // the one with the most time left
  [[nodiscard]] bool free() const noexcept { return through_ == kNone; }
  [[nodiscard]] TaskId through() const noexcept { return through_; }  // has passed, and is not over

  void hold(Pool<Task>& tasks, TaskId id) noexcept {
    tasks[id].state = TaskState::gated;
    waiting_.insert(tasks.data(), id);
  }
  void withdraw(Pool<Task>& tasks, TaskId id) noexcept { waiting_.erase(tasks.data(), id); }
  void pass(TaskId id) noexcept { through_ = id; }
  void over(TaskId id) noexcept { through_ = through_ == id ? kNone : through_; }

 private:
  DeadlineQueue waiting_;
  TaskId through_ = kNone;
};

}  // namespace leat::core
