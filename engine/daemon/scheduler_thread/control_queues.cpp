#include "engine/daemon/scheduler_thread/control_queues.h"

#include <array>
#include <thread>
#include <utility>

namespace leat::daemon {
namespace {

constexpr std::uint32_t kSampleBlocksPerTurn = 16;
constexpr std::int64_t kEstimatesNs = 1'000'000'000;  // PARD's period

}  // namespace

void ControlQueues::command(const Command& command) noexcept {
  while (!commands_.push(command)) {
    bell_.ring();
    std::this_thread::yield();
  }
  if (waker_.should_ring()) bell_.ring();
}

void ControlQueues::notify(const SchedulerEvent& event) noexcept {
  // The control thread drains without waiting for us, so room comes; kQueueRoom makes even that rare.
  while (!events_.push(event)) {
    events_bell_.ring();
    std::this_thread::yield();
  }
  notified_ = true;
}

void ControlQueues::end_turn() noexcept {
  if (std::exchange(notified_, false)) events_bell_.ring();
}

void ControlQueues::pass_samples(record::RecordedCore& core, std::int64_t now) noexcept {
  std::array<core::Sample, 64> taken;
  for (std::uint32_t block = 0; block < kSampleBlocksPerTurn; ++block) {
    const std::size_t count = core.take_samples(taken);
    for (std::size_t i = 0; i < count; ++i)
      if (!samples_.push(taken[i])) break;  // full: the window has more than enough
    if (count < taken.size()) break;
  }
  if (now < next_samples_ns_) return;
  next_samples_ns_ = core::kNever;
  notify({.kind = SchedulerEvent::Kind::samples});
}

void ControlQueues::estimates_came(std::int64_t now) noexcept { next_samples_ns_ = now + kEstimatesNs; }

}  // namespace leat::daemon
