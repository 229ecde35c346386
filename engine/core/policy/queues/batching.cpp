// Who is next, how large a batch is, and what goes into it.
#include <algorithm>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {
namespace {

// Behind the entry a batch is cut to no less than this part of its cap rather than lose a task that has been worked on:
// 1.1 % of the work for nothing without it, .3 with it (docs/internals/policies.md).
constexpr std::uint32_t kMinPartPermille = 700;
// In a burst a backlog counts in proportion to its age until that is so many SLOs (docs/research/studies.md, bursts of
// Azure's LLM traces; chosen on PARD's series).
constexpr TimeNs kYoungSlos = 3;

}  // namespace

// The freshest come first where the time to drain the queue exceeds what the freshest could spend waiting here; in an
// overload the oldest would all be late by little. Else the oldest come first.
bool QueueScheduler::largest_budget_first(const TaskQueue& l, ConsumerId s) const noexcept {
  if (l.classes == 0) return false;
  const ModuleRules& m = modules_[l.module];
  const TimeNs budget = task(l.by_deadline[view_.top_class(l)].back()).deadline_ns - view_.now -
                        scaled(l.module, consumer(s).run_ns[cap_of(s)]) - m.after_ns;
  const TimeNs drain = static_cast<TimeNs>(l.items) * scaled(l.module, m.ns_per_item);
  // Largest first gives up the old for the sake of the fresh: right while the overload lasts. When it ends soon, the
  // fresh could have waited until then, and a young backlog may end soon.
  std::int64_t believed = 1000;
  const std::uint32_t a = fixed(l.module).application;
  const ApplicationLoad& seen = view_.load.application(a);
  const ApplicationRules& rules = rules_of(a);
  if (variant_.ages && rules.burst && rules.burst_from_ns == seen.backlog_ns) {
    const TimeNs grown = application(l.module).slo_ns / 1000 * (1000 * kYoungSlos);
    believed = std::min<std::int64_t>(1000, (view_.now - seen.backlog_ns) * 1000 / std::max<TimeNs>(1, grown));
  }
  return drain * believed > budget * 1000;
}

// What has been worked on upstream is not given up for the sake of a full batch: the largest batch, at least a part of
// the target, with which the earliest deadline here is still met. Entry modules keep the target.
std::uint32_t QueueScheduler::shrink(const TaskQueue& l, ConsumerId s, TimeNs start,
                                     std::uint32_t target) const noexcept {
  if (l.classes == 0 || view_.topology().modules[l.module].before.empty()) return target;
  const std::uint32_t min = std::max(1u, target * kMinPartPermille / 1000);
  const TimeNs after = modules_[l.module].after_ns;
  const auto run = [&](std::uint32_t n) { return scaled(l.module, consumer(s).run_ns[std::min(n, own_cap(s))]); };
  for (TaskId t = l.by_deadline[view_.top_class(l)].front(); t != kNone; t = task(t).after) {
    const TimeNs room = task(t).give_up_ns == kNever ? kNever : task(t).give_up_ns - start - after;
    if (room < run(min)) continue;  // lost in any case
    std::uint32_t n = target;
    while (n > min && run(n) > room) --n;
    return n;
  }
  return target;
}

// Takes up to `target` items into the queue's next batch, dropping what is condemned on the way. The highest class with
// tasks comes first.
void QueueScheduler::form(const TaskQueue& l, ConsumerId s, TimeNs start, std::uint32_t target) noexcept {
  const bool largest_first = largest_budget_first(l, s);
  const TimeNs d = scaled(l.module, consumer(s).run_ns[std::clamp(target, 1u, own_cap(s))]);
  while (l.forming.items < target && l.classes != 0) {
    const DeadlineQueue& waiting = l.by_deadline[view_.top_class(l)];
    const TaskId id = largest_first ? waiting.back() : waiting.front();
    if (l.forming.items + task(id).items > room(consumer(s)) || view_.apart(l, id)) break;
    const Reason reason = judge(task(id), start, d);
    if (reason != Reason::none && !doubted(task(id), start, d)) {
      core_.drop(id, reason);
      continue;
    }
    core_.take(id);
  }
  if (largest_first) purge_low_end(l, start, d);
}

}  // namespace leat::core
