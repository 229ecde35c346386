// Coordinated streams behind the door: asks each coordinator (coordinator/coordinator.h) for its plan every 200 ms,
// tells each stream when its frames are wanted, and makes the planned batches of the requests that come.
//
// A coordinated request is a request like any other: ledger, deadline, drop rules and batches are everybody's. What is
// added stands in front of the queues, the gate: its task is held until all members of its planned batch are there, or
// the batch should have begun the grace ago; then they are queued together, so that any scheduler finds them as one
// batch. A task that comes after that is queued at once. So is one that no plan has asked for, of a stream that may ask
// itself (streams/asking.h) and has not asked too often; it rides in the next batch. Any other is queued as background
// work: who sends more than he was asked for disturbs nobody who waits for his turn.
//
// Applications of one module whose routes have one stage can be coordinated. Those that share partitions, directly or
// through others, have one plan. No allocation after construction. One thread, the scheduler's. Unknown streams are
// ignored.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/queue/task.h"
#include "engine/core/schedule.h"
#include "engine/core/scheduler.h"
#include "engine/core/snapshot.h"

namespace leat::core {

class Coordination {
 public:
  Coordination(const Topology& topology, const Limits& limits);

  [[nodiscard]] bool serves(std::uint32_t application) const noexcept { return place_[application].plan != kNone; }
  // False: no room.
  [[nodiscard]] bool open(TimeNs now, StreamId stream, const StreamConfig& config) noexcept;
  void close(TimeNs now, StreamId stream) noexcept;
  [[nodiscard]] bool has(StreamId stream) const noexcept { return seats_[stream].plan != kNone; }

  // ---- requests ----
  // A request's task has come into being. What is to become of it.
  enum class Way : std::uint8_t { queue, hold, background };
  [[nodiscard]] Way arrived(TimeNs now, StreamId stream, TimeNs capture_ns, TaskId task) noexcept;
  void withdrawn(StreamId stream, TaskId task) noexcept;  // a held one is gone
  // Tasks whose time has come, in the order of their batches: to be queued. Valid until the next call.
  [[nodiscard]] std::span<const TaskId> due(TimeNs now) noexcept;
  void answered(TimeNs now, StreamId stream, TimeNs capture_ns) noexcept;
  bool observe(TimeNs now, StreamId stream, const Observation& seen) noexcept;
  void partition(PartitionId partition, bool up) noexcept;
  // A batch of an application's module has taken so long.
  void ran(std::uint32_t application, PartitionId partition, std::uint32_t items, TimeNs run_ns) noexcept;

  // ---- another plan ----
  // The same applications take the same time on the same partitions: what has been planned holds.
  [[nodiscard]] bool same_times(const Coordination& other) const noexcept { return times_ == other.times_; }
  // The stream as it stands in `from`, which it leaves there: what its drops have shown stays known, and it waits to be
  // admitted. Nothing where its application cannot be coordinated here, or there is no room: it is so no more.
  void take_over(TimeNs now, StreamId stream, const StreamConfig& config, const Coordination& from) noexcept;

  // ---- plans ----
  // Plans anew where it is time. Streams whose schedule may differ now are in changed().
  void tick(TimeNs now) noexcept;
  [[nodiscard]] std::span<const StreamId> changed() const noexcept { return changed_; }
  [[nodiscard]] TimeNs next_timer() const noexcept;  // of tick() and due()
  [[nodiscard]] StreamSchedule schedule(StreamId stream) const noexcept;
  void visit_state(Snapshot& state) {
    state(plans_, changed_);
    state.changed(seats_);
  }

 private:
  static constexpr std::size_t kHeld = 2;  // of a stream: the two frames of a probe
  struct Entry {
    ScheduledFrame frame;
    std::uint32_t gate = 0;  // of its plan
    std::uint8_t wanted = 1, came = 0;
  };
  struct Seat {                  // of a stream
    std::uint32_t plan = kNone;  // kNone: not coordinated
    std::uint32_t number = 0;    // the coordinator's
    TimeNs period_ns = 0, capture_ns = 0;
    std::uint32_t unobserved = 0;  // answers that it may still report on
    std::uint32_t since_far = 0;   // answers since its last far report
    std::uint32_t entries = 0;
    std::array<Entry, kScheduledFrames> entry{};
    std::array<TaskId, kHeld> held{};
    std::array<std::uint32_t, kHeld> held_for{};  // gate; kNone: its batch is no longer planned
    std::uint32_t holds = 0;
  };
  struct Gate {  // before a planned batch
    TimeNs start_ns = 0, latest_ns = 0;
    PartitionId partition = 0;
    std::uint32_t wanted = 0, came = 0;
    bool open = false;
    std::uint32_t next = kNone;  // the same batch's in the next plan
    [[nodiscard]] TimeNs due_ns() const noexcept { return came >= wanted ? start_ns : latest_ns; }
  };
  struct Plan {  // of applications that share partitions
    Plan(std::vector<streams::BatchTimes> batch_ns, const streams::CoordinatorSettings& settings)
        : late_ns(batch_ns.front().size()),
          coordinator(std::move(batch_ns), settings),
          stream_of(settings.streams, kNone) {}
    std::vector<TimeNs> late_ns;  // by the coordinator's number of a partition: how late its last batch was let through
    streams::Coordinator coordinator;
    std::vector<PartitionId> partitions;  // by the coordinator's number
    std::vector<StreamId> stream_of;      // by the coordinator's number
    std::vector<Gate> gates, before;      // by batch of the plan
    TimeNs next_gate_ns = kNever;
    void visit_state(Snapshot& state) { state(late_ns, coordinator, stream_of, gates, before, next_gate_ns); }
  };
  struct Place {  // of an application
    std::uint32_t plan = kNone, module = 0;
  };
  void apply(TimeNs now, Plan& plan) noexcept;

  [[nodiscard]] bool open(TimeNs now, StreamId stream, const StreamConfig& config, double prior_slope) noexcept;

  std::vector<streams::BatchTimes> times_;  // by application
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Place> place_;  // by application
  std::vector<Seat> seats_;   // by StreamId
  std::vector<TaskId> due_;
  std::vector<StreamId> changed_;
};

}  // namespace leat::core
