#include "engine/papers/in_turn.h"

namespace leat::papers {

void InTurn::plan() {
  site_.size_by_queue(rounds_);
  for (ModuleId m : site_.component.modules)
    site_.each_consumer(m,
                        [&](ConsumerId v) { rounds_[site_.consumer(v).queue].ratio = site_.ratio(site_.consumer(v)); });
}

// False: nobody is up.
bool InTurn::begin_round(QueueId first, QueueId end) noexcept {
  const TimeNs now = site_.view.now;
  const auto cap = [&](QueueId l) { return site_.cap(site_.consumer_of(l)); };
  QueueId soonest = kNone;
  for (QueueId l = first; l < end; ++l) {
    rounds_[l].block_left = 0;
    rounds_[l].next_start_ns = std::max(rounds_[l].next_start_ns, now);
    if (!site_.up(l)) continue;
    const TimeNs start = rounds_[l].next_start_ns;
    const bool smaller =
        soonest != kNone && start == rounds_[soonest].next_start_ns && start > now && cap(l) < cap(soonest);
    if (soonest == kNone || start < rounds_[soonest].next_start_ns || smaller) soonest = l;
  }
  if (soonest == kNone) return false;
  for (QueueId l = first; l < end; ++l) {
    if (l != soonest && (!site_.up(l) || rounds_[l].ratio != rounds_[soonest].ratio)) continue;
    rounds_[l].block_left = cap(l);
    rounds_[l].next_start_ns += site_.consumer_of(l).run_ns[cap(l)];
  }
  return true;
}

QueueId InTurn::place(ModuleId m, const Task& task) noexcept {
  const QueueId first = site_.view.queues.first(m), queues = site_.view.queues.count(m), end = first + queues;
  bool open = false;
  for (QueueId l = first; l < end; ++l) open = open || (rounds_[l].block_left > 0 && site_.up(l));
  if (!open && !begin_round(first, end)) return first;
  for (std::uint32_t i = 0; i < queues; ++i) {
    const QueueId l = first + (next_[m] + i) % queues;
    if (rounds_[l].block_left == 0 || !site_.up(l)) continue;
    rounds_[l].block_left -= std::min(rounds_[l].block_left, task.items);
    next_[m] = l - first + 1;
    return l;
  }
  return first;
}

}  // namespace leat::papers
