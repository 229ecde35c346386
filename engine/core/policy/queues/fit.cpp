// Unequal partitions or unequal requests: a partition takes what ends in time there, and leaves the
// rest to faster ones or to the next batch.
//
// A queue is mixed when its consumers run at different speeds; they then stand slowest first, so that an idle slow
// partition is offered a task before an idle fast one: ELSA's "smallest partition with positive slack" (Algorithm 2),
// decided when a partition is idle instead of on arrival. A task is in time on consumer v, in a batch of n items, when
// now + d_v(n) + L_sub <= its deadline; the batch grows in the queue's order while that holds for everyone in it. Only
// the fastest consumer's d decides whether a task is hopeless.
#include <algorithm>
#include <bit>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {
namespace {

// How many tasks that do not fit are looked past, per batch: keeps a decision short.
constexpr std::uint32_t kLooks = 64;

}  // namespace

void QueueScheduler::form_fitting(const TaskQueue& l, ConsumerId s, TimeNs start, std::uint32_t target) noexcept {
  const bool high_first = largest_budget_first(l, s);
  const QueueConsumer& mine = consumer(s);
  const ConsumerId fast_id = l.first_consumer + l.consumers - 1;
  const QueueConsumer& fastest = consumer(fast_id);
  const std::uint32_t max = room(mine), fast_room = room(fastest);
  const TimeNs after = modules_[l.module].after_ns;
  TimeNs until = kNever;  // the first moment at which somebody in the batch would be late
  std::uint32_t looks = 0;
  for (std::uint32_t left = l.classes; left != 0 && looks < kLooks;) {
    const auto top = static_cast<std::size_t>(std::bit_width(left) - 1);
    left &= ~(1u << top);
    const auto end = [&] { return high_first ? l.by_deadline[top].back() : l.by_deadline[top].front(); };
    TaskId next = kNone;
    for (TaskId id = end(); id != kNone && looks < kLooks; id = next) {
      const Task& t = task(id);
      next = high_first ? t.before : t.after;
      const TimeNs fast = scaled(l.module, fastest.run_ns[std::min(t.items, fast_room)]);
      if (const Reason reason = judge(t, start, fast); reason != Reason::none && !doubted(t, start, fast)) {
        // Siblings go with it, perhaps the next one too: begin again at the end of the queue.
        core_.drop(id, reason);
        next = end();
        continue;
      }
      const std::uint32_t items = l.forming.items + t.items;
      const TimeNs bound = std::min(until, t.give_up_ns == kNever ? kNever : t.give_up_ns - after);
      const bool alone = l.forming.tasks == 0 && s == fast_id;  // nobody could do better
      if (items > max || view_.apart(l, id) || (l.forming.tasks > 0 && items > target) ||
          (start + scaled(l.module, mine.run_ns[std::min(items, max)]) > bound && !alone)) {
        ++looks;
        continue;
      }
      until = bound;
      core_.take(id);
      if (l.forming.items >= target) return;
    }
  }
}

// Caps of a mixed module's consumers: each the largest batch that ends within the module's part of what the plan
// allots, `budget`.
void QueueScheduler::cap_by_time(ModuleId module, TimeNs budget) noexcept {
  each_consumer(module, [&](ConsumerId v) {
    const std::uint32_t largest = room(consumer(v));
    std::uint32_t& cap = own_cap(v);
    cap = 1;
    while (cap < largest && consumer(v).run_ns[cap + 1] <= budget) ++cap;
  });
}

}  // namespace leat::core
