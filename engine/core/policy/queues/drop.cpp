// When a waiting task is given up. Every test is made when the task is about to enter a batch; besides, what waits past
// the moment at which it is worthless is answered then by the core.
#include <algorithm>
#include <bit>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {

// Reason::none: keep. `start` is when its batch would start (t_e), `d` what the batch is expected to take. As PARD's
// equation 3, with the forecast in place of averages: (t_e - t_s) + d + L_sub > SLO.
Reason QueueScheduler::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  if (t.give_up_ns == kNever) return Reason::none;
  if (start >= t.give_up_ns) return Reason::expired;
  if (!variant_.foresees || start + d + modules_[t.module].after_ns <= t.give_up_ns) return Reason::none;
  return t.give_up_ns > t.deadline_ns ? Reason::stale : Reason::unreachable;
}

// A task that only the forecast of what comes after its module condemns is let through now and then, when its module
// has nothing better to do.
bool QueueScheduler::doubted(const Task& t, TimeNs start, TimeNs d) noexcept {
  if (!variant_.foresees || start > view_.now) return false;
  if (start + d + fixed(t.module).min_after_ns > t.give_up_ns) return false;
  return canaries_.doubt_forecast(t.module);
}

// By the estimates the task, alone on the fastest consumer of its queue, would not be in time.
bool QueueScheduler::late(ConsumerId id, TaskId t) noexcept {
  const TaskQueue& l = queue(consumer(id).queue);
  const QueueConsumer& s = consumer(modules_[l.module].mixed ? l.first_consumer + l.consumers - 1 : id);
  const std::uint32_t items = std::min(task(t).items, room(s));
  const TimeNs d = scaled(l.module, s.run_ns[items]);
  modules_[l.module].after_ns = forecast(l.module, items, d);
  return judge(task(t), view_.now, d) != Reason::none;
}

bool QueueScheduler::try_canary(PartitionId p) noexcept {
  const Canaries::Found found = canaries_.on(p, [this](ConsumerId s, TaskId t) { return late(s, t); });
  if (found.task == kNone) return false;
  core_.take(found.task);
  launch(consumer(found.consumer).queue, found.consumer, view_.now, true);
  return true;
}

// With the largest budget first, the hopeless ones gather at the other end, where nobody looks.
void QueueScheduler::purge_low_end(const TaskQueue& l, TimeNs start, TimeNs d) noexcept {
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& waiting = l.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    while (!waiting.empty()) {
      const Reason reason = judge(task(waiting.front()), start, d);
      if (reason == Reason::none) break;
      core_.drop(waiting.front(), reason);
    }
  }
}

}  // namespace leat::core
