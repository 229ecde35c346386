// A scheduler core whose inputs and actions are recorded as they pass: what leatd drives. Calls are those of
// core::Scheduler, and do the same; while nothing is recorded they cost a comparison.
//
// The record holds each event with its time, what the core asked for within it (TaskSizes, Offers), and each action
// where it was taken. So the same core can be fed the same again (replay.h), and what served whom, where and when can
// be read without a core (history.h).
//
// Thread rule: the scheduler's. Nothing allocates but the constructor and record().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/core/scheduler.h"
#include "engine/core/snapshot.h"
#include "engine/record/bytes.h"
#include "engine/record/plan_bytes.h"
#include "engine/record/ring.h"

namespace leat::record {

// What is not an event of the core, but happened: who came, what was wrong, why a worker ended.
struct Note {
  std::uint32_t kind = 0;  // shm::EventKind
  std::uint32_t stream = UINT32_MAX;
  std::uint64_t token = 0, a = 0, b = 0, c = 0;
};

// What the driver's Offers said of a stream last: asked again and again, it mostly says the same.
struct LastPicture {
  bool there = false;
  core::TimeNs at_ns = 0;
  bool operator==(const LastPicture&) const = default;
};

// What an entry says shorter because of those before it.
struct Known {
  struct Batch {  // the last that was dispatched under its number
    std::uint32_t generation = 0, tasks = 0;
  };
  explicit Known(const core::Limits& limits) : batches(limits.batches), pictures(limits.streams) {}
  std::vector<Batch> batches;
  std::vector<LastPicture> pictures;  // by stream
  [[nodiscard]] bool is_last(core::BatchHandle b) const noexcept {
    return b.index < batches.size() && batches[b.index].generation == b.generation;
  }
  void sent(const core::Action& dispatch) noexcept {
    batches[dispatch.batch.index] = {.generation = dispatch.batch.generation,
                                     .tasks = static_cast<std::uint32_t>(dispatch.tasks.size())};
  }
  void visit_state(core::Snapshot& state) {
    state.changed(batches);
    state.changed(pictures);
  }
};

// A plan, ready to take over, and as the record has it.
struct PreparedPlan {
  core::ReadyPlanPtr core;
  std::string encoded;
  std::vector<std::uint32_t> heirs;  // [application], as its topology says
};

class RecordedCore final : private core::TaskSizes, private core::Offers {
 public:
  RecordedCore(const core::Topology& topology, const core::Policy& policy, const core::Limits& limits, Names names);
  ~RecordedCore() override;

  // ---- recording ----
  // Into the ring from now on, which outlives this; nullptr: no more. The record can be replayed from the core's making
  // on, or from the first of its states that is in the ring: one is written where recording begins later, and then
  // whenever an eighth of the ring has gone by.
  void record(Ring* ring, core::TimeNs now) noexcept;
  [[nodiscard]] bool records() const noexcept { return ring_ != nullptr; }
  void note(core::TimeNs now, const Note& note) noexcept {
    if (ring_ != nullptr) put_note(now, note);
  }

  // ---- set-up ----
  void measure_tasks(const core::TaskSizes& sizes) noexcept;
  void watch_offers(const core::Offers& offers) noexcept;

  // ---- events ----
  [[nodiscard]] core::StreamId open_stream(core::TimeNs now, const core::StreamConfig& config) noexcept;
  void close_stream(core::TimeNs now, core::StreamId stream, Reason reason) noexcept;
  core::RequestHandle submit(core::TimeNs now, const core::Submission& submission) noexcept;
  void cancel(core::TimeNs now, core::RequestHandle request) noexcept;
  bool observe(core::TimeNs now, core::StreamId stream, const core::Observation& seen) noexcept;
  void stage_started(core::TimeNs now, core::BatchHandle batch, std::uint32_t stage) noexcept;
  void stage_beside(core::TimeNs now, core::BatchHandle batch, std::uint32_t stage) noexcept;
  bool stage_finished(core::TimeNs now, core::BatchHandle batch, std::uint32_t stage,
                      std::span<const core::TaskResult> results, core::TimeNs went_on_ns = 0) noexcept;
  bool partition_lost(core::TimeNs now, core::PartitionId partition) noexcept;
  void partition_ready(core::TimeNs now, core::PartitionId partition) noexcept;
  void set_estimates(core::TimeNs now, const core::Estimates& estimates) noexcept;
  void advance(core::TimeNs now) noexcept;
  // What prepare() has made; its core is nullptr afterwards, where it is true.
  [[nodiscard]] bool replace(core::TimeNs now, PreparedPlan& plan, bool measured_anew) noexcept;
  [[nodiscard]] core::ReadyPlanPtr take_retired() noexcept;
  void give_up(core::TimeNs now, std::uint32_t application, Reason reason) noexcept;
  [[nodiscard]] bool next_action(core::Action& out) noexcept;

  // ---- what is asked, as core::Scheduler says ----
  [[nodiscard]] const core::Scheduler& core() const noexcept { return core_; }
  [[nodiscard]] core::TimeNs next_timer() const noexcept { return core_.next_timer(); }
  [[nodiscard]] bool idle() const noexcept { return core_.idle(); }
  [[nodiscard]] bool full() const noexcept { return core_.full(); }
  [[nodiscard]] bool quiet(core::PartitionId partition) const noexcept { return core_.quiet(partition); }
  [[nodiscard]] std::uint32_t in_flight(std::uint32_t application) const noexcept {
    return core_.in_flight(application);
  }
  [[nodiscard]] const core::Counters& counters() const noexcept { return core_.counters(); }
  [[nodiscard]] core::TimeNs oldest_queued_ns(core::ModuleId module) const noexcept {
    return core_.oldest_queued_ns(module);
  }
  [[nodiscard]] core::StreamSchedule schedule(core::StreamId stream) const noexcept { return core_.schedule(stream); }
  // As core::Scheduler::prepare; any thread.
  [[nodiscard]] PreparedPlan prepare(const core::Topology& topology, const core::Policy& policy, Names names) const;
  // Nothing is decided by it, so it is not recorded.
  [[nodiscard]] std::size_t take_samples(std::span<core::Sample> out) noexcept { return core_.take_samples(out); }

 private:
  std::uint32_t units(std::uint64_t token, core::ModuleId module, std::uint32_t item) const noexcept override;
  std::optional<core::TimeNs> picture_ns(core::StreamId stream) const noexcept override;

  [[nodiscard]] std::byte* room(std::size_t most) const noexcept;
  [[nodiscard]] std::byte* event(Kind kind, std::uint8_t flags, core::TimeNs now, std::size_t more) const noexcept;
  void begin_segment() const noexcept;
  void put_stream(std::byte*& at, const core::StreamConfig& config) const noexcept;
  void put_stage(Kind kind, core::TimeNs now, core::BatchHandle batch, std::uint32_t stage) const noexcept;
  void put_note(core::TimeNs now, const Note& note) noexcept;
  void put_action(const core::Action& action) noexcept;
  void put_check() const noexcept;
  void put_state() const noexcept;

  const core::Limits limits_;
  core::Scheduler core_;
  std::string plan_;  // in force, as encode() has it
  const core::TaskSizes* sizes_ = nullptr;
  const core::Offers* offers_ = nullptr;
  bool begun_ = false;                       // it has had an event
  std::vector<core::StreamConfig> streams_;  // by the core's number
  std::vector<std::uint8_t> open_;           // likewise
  mutable Known known_;
  mutable std::uint32_t asked_ = 0;  // since the last units or picture entry of this event
  mutable Ring* ring_ = nullptr;
  mutable core::TimeNs last_ns_ = 0;     // the last entry's time
  mutable std::uint64_t hash_ = 0;       // over all actions since the last check
  mutable std::uint32_t unchecked_ = 0;  // how many those are
  std::unique_ptr<std::byte[]> state_;   // room for one
  std::size_t state_bytes_ = 0;
  mutable std::uint64_t segments_ = 0;  // begun since the last state
  mutable std::uint64_t last_state_bytes_ = 0;
  mutable bool wants_state_ = false;
};

// A step of the hash over actions; what a schedule tells is asked of the core.
[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, const core::Action& action, const core::Scheduler& core) noexcept;
// leatd's draw for branches taken by chance: a mix of what names the frame, so that a record need not hold it.
[[nodiscard]] constexpr std::uint64_t branch_draw(std::uint64_t token, core::TimeNs capture_ns) noexcept {
  return (token ^ static_cast<std::uint64_t>(capture_ns)) * 0x9e37'79b9'7f4a'7c15ull;
}

}  // namespace leat::record
