// The scheduler thread as the control thread has it: made ready, begun, told and heard, ended. What it does is
// scheduler_loop.h. Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "engine/core/load/estimates.h"
#include "engine/daemon/scheduler_thread/command_queue.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "shm/src/rings/doorbell.h"

namespace leat::daemon {

class SchedulerThread {
 public:
  SchedulerThread() = default;
  SchedulerThread(const SchedulerThread&) = delete;
  SchedulerThread& operator=(const SchedulerThread&) = delete;
  ~SchedulerThread() { end(); }

  Status open();                                                         // its bells
  [[nodiscard]] int events_fd() const noexcept { return events_.fd(); }  // readable when there are events

  // All that serving needs but the thread. `options.samples` is filled in.
  Status prepare(const core::Topology& topology, const core::Policy& policy, LoopOptions options, Metrics& metrics);
  void begin();
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  [[nodiscard]] bool runs() const noexcept { return thread_.joinable(); }
  void end();  // once nothing is asked of it any more; its last events are to be had afterwards

  void command(const Command& command);  // before it has begun nobody needs to hear it
  // In the place of the plan that it runs by. new_edges: those of the tables that no plan in force has.
  // What plan_in_force names then.
  const LoopPlan* replace_plan(const core::Topology& topology, const core::Policy& policy, PlanTables tables,
                               std::span<const std::uint32_t> new_edges, bool measured_anew);
  // As many of its events as it pays to take at once; the rest come with the next turn.
  template <class Handle>
  void take_events(const Handle& handle);
  void update_estimates(std::int64_t now_ns);

 private:
  static constexpr int kEventsPerTurn = 256;

  shm::Doorbell events_, commands_;             // commands: the loop's, once that is made
  std::unique_ptr<core::Estimator> estimator_;  // none when the policy reads no estimates
  std::unique_ptr<SchedulerLoop> loop_;
  std::thread thread_;
  bool begun_ = false;
};

template <class Handle>
void SchedulerThread::take_events(const Handle& handle) {
  events_.drain();
  SchedulerEvent event;
  for (int i = 0; begun_ && loop_->next_event(event); ++i) {
    handle(event);
    if (i == kEventsPerTurn && thread_.joinable()) return events_.ring();
  }
}

}  // namespace leat::daemon
