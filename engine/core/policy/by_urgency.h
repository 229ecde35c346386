// The lanes of a partition, the most urgent first: by rank, then by the earliest deadline, then as they stand.
#pragma once

#include "engine/core/policy/scheduler_interface.h"

namespace leat::core {

// Asks attempt(server) for one lane of the partition after the other until one has started something; false: none has.
// rank_of(level): of a lane's highest level with tasks; larger first. Lanes with nothing are left out.
template <class RankOf, class Attempt>
bool by_urgency(const StateView& view, PartitionId partition, RankOf&& rank_of, Attempt&& attempt) noexcept {
  const std::vector<ServerId>& mine = view.lanes.of_partition(partition);
  if (mine.size() == 1) return attempt(mine.front());
  struct Rank {
    std::uint32_t priority;
    TimeNs deadline;
    ServerId server;
    bool operator>(const Rank& o) const {
      return priority != o.priority   ? priority > o.priority
             : deadline != o.deadline ? deadline < o.deadline
                                      : server < o.server;
    }
  };
  // In order of rank without sorting: each round takes the best below the one before. A partition serves few lanes.
  Rank last{UINT32_MAX, INT64_MIN, 0};
  for (;;) {
    Rank best{0, kNever, kNone};
    for (ServerId s : mine) {
      const Lane& l = view.lanes[view.lanes.server(s).lane];
      Rank rank{0, view.now, s};
      if (l.classes != 0) {
        const std::uint8_t top = view.top_class(l);
        rank.priority = rank_of(top);
        rank.deadline = view.tasks[l.queue[top].front()].deadline_ns;
      } else if (l.forming.tasks == 0) {
        continue;
      }
      if (last > rank && (best.server == kNone || rank > best)) best = rank;
    }
    if (best.server == kNone) return false;
    if (attempt(best.server)) return true;
    last = best;
  }
}

}  // namespace leat::core
