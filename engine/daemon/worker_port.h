// The daemon's end of one worker's channel (engine/worker/channel.h). A worker runs other people's models, so what it
// reports is checked before it is believed; a worker that reports nonsense is killed and started anew.
//
// Threads: create() and the descriptors on the control thread; push, flush, take and the sleep calls on the scheduler
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/worker/channel.h"
#include "leat/result.hpp"
#include "shm/src/doorbell.h"
#include "shm/src/segment.h"

namespace leat::daemon {

class WorkerPort {
 public:
  static Result<std::unique_ptr<WorkerPort>> create();

  // ---- control thread ----
  int channel_fd() const noexcept { return segment_.fd(); }
  int bell_fd() const noexcept { return bell_.fd(); }
  // A control message was sent or queued: cells pushed after this are run after it was read.
  void control_sent() noexcept {
    control_.fetch_add(1, std::memory_order_relaxed);
  }  // ordered by the command queue behind it

  // ---- scheduler thread ----
  // The cells of one batch. False: no room; the worker is stuck or broken.
  [[nodiscard]] bool push(std::span<worker::DispatchCell> cells) noexcept;
  bool flush() noexcept;  // one wake for all pushed since the last; true: a system call was made
  [[nodiscard]] std::uint32_t take(std::span<worker::ReportCell> out) noexcept { return reports_.pop(out); }
  [[nodiscard]] bool has_reports() const noexcept { return !reports_.empty(); }
  void announce_sleep() noexcept;
  void announce_awake() noexcept { shm::announce_awake(*sleep_); }

 private:
  WorkerPort() = default;
  shm::Segment segment_;
  shm::Doorbell bell_;
  shm::RingProducer<worker::DispatchCell> dispatches_;
  shm::RingConsumer<worker::ReportCell> reports_;
  shm::SleepWord* sleep_ = nullptr;
  shm::Waker waker_;
  std::atomic<std::uint32_t> control_{0};
};

}  // namespace leat::daemon
