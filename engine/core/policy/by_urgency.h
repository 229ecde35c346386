// The queues of a partition, the most urgent first: by rank, then by the earliest deadline, then as they stand.
#pragma once

#include "engine/core/policy/scheduler_interface.h"

namespace leat::core {

// Asks attempt(consumer) for one queue of the partition after the other until one has started something; false: none
// has. rank_of(level): of a queue's highest level with tasks; larger first. TaskQueues with nothing are left out.
template <class RankOf, class Attempt>
bool by_urgency(const StateView& view, PartitionId partition, RankOf&& rank_of, Attempt&& attempt) noexcept {
  const std::vector<ConsumerId>& mine = view.queues.of_partition(partition);
  if (mine.size() == 1) return attempt(mine.front());
  struct Rank {
    std::uint32_t priority;
    TimeNs deadline;
    ConsumerId consumer;
    bool operator>(const Rank& o) const {
      return priority != o.priority   ? priority > o.priority
             : deadline != o.deadline ? deadline < o.deadline
                                      : consumer < o.consumer;
    }
  };
  // In order of rank without sorting: each round takes the best below the one before. A partition serves few queues.
  Rank last{UINT32_MAX, INT64_MIN, 0};
  for (;;) {
    Rank best{0, kNever, kNone};
    for (ConsumerId s : mine) {
      const TaskQueue& l = view.queues[view.queues.consumer(s).queue];
      Rank rank{0, view.now, s};
      if (l.classes != 0) {
        const std::uint8_t top = view.top_class(l);
        rank.priority = rank_of(top);
        rank.deadline = view.tasks[l.by_deadline[top].front()].deadline_ns;
      } else if (l.forming.tasks == 0) {
        continue;
      }
      if (last > rank && (best.consumer == kNone || rank > best)) best = rank;
    }
    if (best.consumer == kNone) return false;
    if (attempt(best.consumer)) return true;
    last = best;
  }
}

}  // namespace leat::core
