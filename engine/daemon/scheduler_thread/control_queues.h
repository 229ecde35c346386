// The queues between the control thread and the scheduler thread, and what wakes who sleeps at them: commands one way,
// events and the core's samples the other.
//
// Threads: command, next_event and sample are the control thread's, all else the scheduler thread's. Nothing is ever
// lost; who finds a queue full rings and waits for room, which each side makes without waiting for the other.
#pragma once

#include <cstdint>

#include "engine/core/scheduler.h"
#include "engine/daemon/scheduler_thread/command_queue.h"
#include "engine/record/recorded_core.h"
#include "shm/src/rings/doorbell.h"

namespace leat::daemon {

class ControlQueues {
 public:
  // `events_bell`: rung when an event was pushed; it outlives this. `bell`: rung by command().
  ControlQueues(const shm::Doorbell& events_bell, shm::Doorbell bell)
      : events_bell_(events_bell), bell_(std::move(bell)) {}

  // ---- control thread ----
  void command(const Command& command) noexcept;
  [[nodiscard]] bool next_event(SchedulerEvent& out) noexcept { return events_.pop(out); }
  [[nodiscard]] bool sample(core::Sample& out) noexcept { return samples_.pop(out); }

  // ---- scheduler thread ----
  [[nodiscard]] bool next_command(Command& out) noexcept { return commands_.pop(out); }
  [[nodiscard]] bool has_commands() const noexcept { return !commands_.empty(); }
  void notify(const SchedulerEvent& event) noexcept;
  void end_turn() noexcept;  // rings once where something was told
  // The estimates are made by the control thread, about once a second while there is work, from what the core leaves
  // behind.
  void pass_samples(record::RecordedCore& core, std::int64_t now) noexcept;
  void estimates_came(std::int64_t now) noexcept;
  // Sleep: may_sleep() of doorbell.h.
  [[nodiscard]] int bell_fd() const noexcept { return bell_.fd(); }
  void drain_bell() noexcept { bell_.drain(); }
  void announce_sleep() noexcept { shm::announce_sleep(sleep_); }
  void announce_awake() noexcept { shm::announce_awake(sleep_); }

 private:
  const shm::Doorbell& events_bell_;
  shm::Doorbell bell_;
  BoundedQueue<Command> commands_;
  BoundedQueue<SchedulerEvent> events_;
  BoundedQueue<core::Sample> samples_;
  shm::SleepWord sleep_{};
  shm::Waker waker_{&sleep_};         // the control thread's
  bool notified_ = false;             // in this turn
  std::int64_t next_samples_ns_ = 0;  // when the control thread is told of samples again; kNever: it has them
};

}  // namespace leat::daemon
