#include "engine/core/policy/canary.h"

#include <algorithm>

namespace leat::core {
namespace {

constexpr TimeNs kQuietNs = 250'000'000;  // after a batch of the module
constexpr std::uint32_t kDoublings = 4;   // of it, after canaries in a row
constexpr TimeNs kTimesItsRun = 20;       // its partition is left to others
constexpr TimeNs kDoubtEvery = 100'000'000;

}  // namespace

bool Canaries::may(ModuleId module, PartitionId partition) const noexcept {
  const OfModule& m = modules_[module];
  return enabled_ && view_.now >= partitions_[partition] && view_.now - m.last_ns >= kQuietNs << m.row;
}

bool Canaries::may_some(PartitionId partition) const noexcept {
  if (!enabled_ || view_.machine.partition(partition).held > 0) return false;
  return std::ranges::any_of(view_.queues.of_partition(partition), [&](ConsumerId s) {
    const TaskQueue& queue = view_.queues[view_.queues.consumer(s).queue];
    return queue.tasks > 0 && may(queue.module, partition);
  });
}

void Canaries::sent(std::uint32_t batch) noexcept {
  OfModule& m = modules_[view_.machine.batch(batch).module];
  m.last_ns = view_.now;
  m.row = std::min(m.row + 1, kDoublings);
}

void Canaries::ended(std::uint32_t id, TimeNs ran, bool usual) noexcept {
  const Batch& b = view_.machine.batch(id);
  OfModule& m = modules_[b.module];
  if (b.canary) {
    partitions_[b.path[b.stage]] = view_.now + kTimesItsRun * ran;
  } else if (usual) {
    m.row = 0;
  }
  if (b.canary || usual) m.last_ns = view_.now;
}

bool Canaries::doubt_forecast(ModuleId module) noexcept {
  OfModule& m = modules_[module];
  if (view_.now - m.doubt_ns < kDoubtEvery) return false;
  m.doubt_ns = view_.now;
  return true;
}

}  // namespace leat::core
