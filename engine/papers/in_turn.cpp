#include "engine/papers/in_turn.h"

namespace leat::papers {

void InTurn::plan() {
  site_.size_by_lane(rounds_);
  for (ModuleId m : site_.component.modules)
    site_.each_server(m, [&](ServerId v) { rounds_[site_.server(v).lane].ratio = site_.ratio(site_.server(v)); });
}

// False: nobody is up.
bool InTurn::begin_round(LaneId first, LaneId end) noexcept {
  const TimeNs now = site_.view.now;
  const auto cap = [&](LaneId l) { return site_.cap(site_.server_of(l)); };
  LaneId soonest = kNone;
  for (LaneId l = first; l < end; ++l) {
    rounds_[l].block_left = 0;
    rounds_[l].next_start_ns = std::max(rounds_[l].next_start_ns, now);
    if (!site_.up(l)) continue;
    const TimeNs start = rounds_[l].next_start_ns;
    const bool smaller =
        soonest != kNone && start == rounds_[soonest].next_start_ns && start > now && cap(l) < cap(soonest);
    if (soonest == kNone || start < rounds_[soonest].next_start_ns || smaller) soonest = l;
  }
  if (soonest == kNone) return false;
  for (LaneId l = first; l < end; ++l) {
    if (l != soonest && (!site_.up(l) || rounds_[l].ratio != rounds_[soonest].ratio)) continue;
    rounds_[l].block_left = cap(l);
    rounds_[l].next_start_ns += site_.server_of(l).run_ns[cap(l)];
  }
  return true;
}

LaneId InTurn::place(ModuleId m, const Task& task) noexcept {
  const LaneId first = site_.view.lanes.first(m), lanes = site_.view.lanes.count(m), end = first + lanes;
  bool open = false;
  for (LaneId l = first; l < end; ++l) open = open || (rounds_[l].block_left > 0 && site_.up(l));
  if (!open && !begin_round(first, end)) return first;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const LaneId l = first + (next_[m] + i) % lanes;
    if (rounds_[l].block_left == 0 || !site_.up(l)) continue;
    rounds_[l].block_left -= std::min(rounds_[l].block_left, task.items);
    next_[m] = l - first + 1;
    return l;
  }
  return first;
}

}  // namespace leat::papers
