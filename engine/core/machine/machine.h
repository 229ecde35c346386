// The machine: which partitions are up, what each holds, and the batches on their way. Occupancy is the shared truth of
// all schedulers: what one has sent, every other sees here.
//
// A partition is up (takes work), draining (a new plan has no use for it: it ends what it holds and takes nothing), or
// down. Only the scheduler's own flows (dispatch.cpp, completion.cpp, failover.cpp) change the machine; a policy sees
// it constant.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core/check.h"
#include "engine/core/model/model.h"
#include "engine/core/queue/pool.h"
#include "engine/core/queue/task.h"
#include "engine/core/snapshot.h"

namespace leat::core {

struct TaskList {  // singly linked by Task::next_in_batch, in order
  TaskId first = kNone, last = kNone;
  std::uint32_t tasks = 0, items = 0;
};

struct Partition {
  bool up = false;
  bool takes = false;            // a batch could be sent to it now
  std::uint32_t held = 0;        // batches sent to it whose end is not proven
  TimeNs free_ns = 0;            // expected end of them all
  TimeNs overlap_ns = 0;         // by so much the next may begin before that
  TimeNs asked_at_ns = 0;        // then it takes the next, and not before; 0: nothing is waited for
  TimeNs deferred_until_ns = 0;  // its policy keeps it idle until then
};

// Where a batch goes, stage by stage, and when each stage is expected to end there.
struct Path {
  std::array<PartitionId, kMaxStages> partition{};
  std::array<TimeNs, kMaxStages> end_ns{};
};

enum class BatchState : std::uint8_t {
  free,
  live,
  condemned  // lost, but another partition still works on it
};

inline constexpr std::size_t kFetched = 16;  // tasks of a batch, whose memory is asked for at once when it ends

struct Batch {
  BatchState state = BatchState::free;
  RouteId route = 0;
  ModuleId module = 0;
  std::uint32_t stage = 0;
  std::uint32_t stages = 1;  // of its route, under the plan that it was formed under
  std::uint32_t plan = 0;    // that plan
  bool begun = false;        // its partition runs it, or beside the one before it there
  bool canary = false;       // its task was condemned by an estimate (policy/canary.h)
  bool went_on = false;      // its partition began it by itself
  RouteId then = kNone;      // with which its partition may go on by itself
  bool through = true;       // goes on to its later stages by itself; reservations send stage by stage
  TaskList list;
  std::uint8_t level = 0;  // the highest of its tasks
  TimeNs sent_ns = 0, started_ns = 0, start_ns = 0, expected_end_ns = 0, stage_end_ns = 0;
  TimeNs overlapped_ns = 0;  // of its run, beside the end of the one before it
  std::array<PartitionId, kMaxStages> path{};
  std::array<TaskId, kFetched> first{};  // of `list`
};

class Machine {
 public:
  Machine(std::size_t partitions, std::uint32_t batches) : partitions_(partitions), batches_(batches) {}

  // ---- to read ----
  [[nodiscard]] const Partition& partition(PartitionId p) const noexcept { return partitions_[p]; }
  [[nodiscard]] std::size_t partitions() const noexcept { return partitions_.size(); }
  [[nodiscard]] const Batch& batch(std::uint32_t id) const noexcept { return batches_[id]; }
  [[nodiscard]] std::uint32_t batches() const noexcept { return batches_.size(); }
  [[nodiscard]] std::uint32_t batches_left() const noexcept { return batches_.left(); }
  [[nodiscard]] BatchHandle handle(std::uint32_t id) const noexcept { return {id, batches_.generation(id)}; }
  [[nodiscard]] bool valid(BatchHandle h) const noexcept { return batches_.valid(h.index, h.generation); }

  // ---- to change ----
  [[nodiscard]] Partition& change(PartitionId p) noexcept { return partitions_[p]; }
  [[nodiscard]] std::uint32_t take_batch() noexcept {
    const std::uint32_t id = batches_.take();
    check(id != kNone, "a batch is sent without a free slot");
    batches_[id] = Batch{};
    batches_[id].state = BatchState::live;
    return id;
  }
  [[nodiscard]] Batch& change_batch(std::uint32_t id) noexcept { return batches_[id]; }
  void free_batch(std::uint32_t id) noexcept {
    batches_[id].state = BatchState::free;
    batches_[id].list = TaskList{};
    batches_.give(id);
  }
  void grow(std::size_t partitions) { partitions_.resize(partitions); }
  void visit_state(Snapshot& state) { state(partitions_, batches_); }

 private:
  std::vector<Partition> partitions_;
  Pool<Batch> batches_;
};

}  // namespace leat::core
