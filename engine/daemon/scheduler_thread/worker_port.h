// The daemon's end of one worker's channel (engine/worker/link/channel.h). A worker runs other people's models, so what
// it reports is checked before it is believed; a worker that reports nonsense is killed and started anew.
//
// Threads: create() and the descriptors on the control thread; push, flush, take and the sleep calls on the scheduler
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/daemon/metrics/slow_calls.h"
#include "engine/worker/link/channel.h"
#include "leat/result.hpp"
#include "shm/src/rings/doorbell.h"
#include "shm/src/segments/segment.h"

namespace leat::daemon {

class WorkerPort {
 public:
  static Result<std::unique_ptr<WorkerPort>> create();

  // ---- control thread ----
  int channel_fd() const noexcept { return segment_.fd(); }
  [[nodiscard]] shm::Fd take_worker_bell() noexcept { return std::move(worker_bell_); }  // to be passed on, once
  // A control message was sent or queued: cells pushed after this are run after it was read.
  void control_sent() noexcept {
    control_.fetch_add(1, std::memory_order_relaxed);
  }  // ordered by the command queue behind it

  // ---- scheduler thread ----
  // The cells of one batch. False: no room; the worker is stuck or broken.
  [[nodiscard]] bool push(std::span<worker::DispatchCell> cells) noexcept;
  bool flush() noexcept;  // one wake for all pushed since the last; true: a system call was made
  int bell_fd() const noexcept { return bell_.fd(); }  // readable when the worker rings
  bool drain_bell() noexcept;                          // false: the worker has hung up
  // It makes the calls that wake it and that take its rings slow for leatd: it polls its bell thousands of times.
  [[nodiscard]] bool slow() const noexcept { return calls_.too_slow(); }
  [[nodiscard]] std::uint32_t take(std::span<worker::ReportCell> out) noexcept { return reports_.pop(out); }
  [[nodiscard]] bool has_reports() const noexcept { return !reports_.empty(); }
  void announce_sleep() noexcept;
  void announce_awake() noexcept { shm::announce_awake(*sleep_); }

 private:
  WorkerPort() = default;
  shm::Segment segment_;
  shm::BellSocket bell_;
  shm::Fd worker_bell_;
  TimedCalls calls_;
  shm::RingProducer<worker::DispatchCell> dispatches_;
  shm::RingConsumer<worker::ReportCell> reports_;
  shm::SleepWord* sleep_ = nullptr;
  shm::Waker waker_;
  std::atomic<std::uint32_t> control_{0};
};

}  // namespace leat::daemon
