// How large a batch is, and when it may start.
#include <algorithm>
#include <bit>

#include "engine/core/policy/queued.h"

namespace leat::core {

// The last moment at which a batch of `items` may start so that the earliest deadline here is met.
TimeNs Queued::last_safe_start(const Lane& l, ServerId s, std::uint32_t items) const noexcept {
  TimeNs earliest = kNever;
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& queue = l.queue[static_cast<std::size_t>(std::countr_zero(left))];
    earliest = std::min(earliest, task(queue.front()).deadline_ns);
  }
  if (earliest == kNever) return kNever;
  return earliest - server(s).run_ns[std::clamp(items, 1u, servers_[s].cap)] - fixed(l.module).after_least_ns;
}

std::uint32_t Queued::batch_target(LaneId id, ServerId s, TimeNs start) noexcept {
  const Lane& l = lane(id);
  const std::uint32_t waiting = l.items + l.forming.items, cap = servers_[s].cap;
  if (waiting == 0) return 0;
  const auto wait_until = [&](TimeNs at) {
    can_.wake(id, at);
    return 0u;
  };
  switch (policy_.batch) {
    case Batching::greedy:
      return std::min(waiting, cap_of(s));
    case Batching::single:
      return 1;
    case Batching::fill:
    case Batching::fixed: {
      if (waiting >= cap) return cap;
      const TimeNs safe = last_safe_start(l, s, policy_.batch == Batching::fixed ? cap : waiting + 1);
      return safe > view_.now ? wait_until(safe) : waiting;
    }
    case Batching::search_down: {
      // PPipe section 5.4, step 2, on one partition: the largest batch that ends before the first deadline here.
      for (std::uint32_t n = cap; n >= 1; --n) {
        const TimeNs safe = last_safe_start(l, s, n);
        if (safe < start) continue;
        if (waiting >= n) return n;
        const TimeNs until = last_safe_start(l, s, std::min(waiting + 1, n));
        return until > view_.now ? wait_until(until) : waiting;
      }
      return std::min(waiting, 1u);  // the oldest cannot be met: the drop policy decides
    }
    case Batching::reactive: {
      // The largest batch with which the oldest here keeps its module's own budget; no look at what is before or after.
      const TaskId oldest = l.arrivals[static_cast<std::size_t>(std::bit_width(l.classes) - 1)].front();
      const TimeNs left = task(oldest).queued_ns + modules_[l.module].share_ns - start;
      std::uint32_t n = std::min(waiting, cap);
      while (n > 1 && server(s).run_ns[n] > left) --n;
      return n;
    }
  }
  return 0;
}

// What has been worked on upstream is not given up for the sake of a full batch: the largest batch, at least a part of
// the target, with which the earliest deadline here is still met. Entry modules keep the target.
std::uint32_t Queued::shrink(const Lane& l, ServerId s, TimeNs start, std::uint32_t target) const noexcept {
  if (l.classes == 0 || view_.topology().modules[l.module].before.empty()) return target;
  const std::uint32_t least = std::max(1u, target * policy_.shrink_permille / 1000);
  const TimeNs after = modules_[l.module].after_ns;
  const auto run = [&](std::uint32_t n) { return paced(l.module, server(s).run_ns[std::min(n, servers_[s].cap)]); };
  for (TaskId t = l.queue[view_.top_class(l)].front(); t != kNone; t = task(t).after) {
    const TimeNs room = task(t).give_up_ns == kNever ? kNever : task(t).give_up_ns - start - after;
    if (room < run(least)) continue;  // lost in any case
    std::uint32_t n = target;
    while (n > least && run(n) > room) --n;
    return n;
  }
  return target;
}

// Takes up to `target` items into the lane's next batch, dropping what the policy condemns on the way.
void Queued::form(const Lane& l, ServerId s, TimeNs start, std::uint32_t target) noexcept {
  const bool high_first = choose_order(l, s);
  const TimeNs d = paced(
      l.module, server(s).run_ns[(policy_.exact_duration || policy_.forecast) ? std::clamp(target, 1u, servers_[s].cap)
                                                                              : servers_[s].cap]);
  if (policy_.drop == Drop::window || policy_.drop == Drop::window_local) slide_window(l, s, start);
  while (l.forming.items < target) {
    const TaskId id = next_task(l, high_first);
    if (id == kNone || l.forming.items + task(id).items > room(server(s))) break;
    if (view_.apart(l, id)) break;
    const Reason reason = judge(task(id), start, d);
    if (reason != Reason::none && !doubted(task(id), start, d)) {
      can_.drop(id, reason);
      continue;
    }
    can_.take(id);
  }
  if (high_first) purge_low_end(l, start, d);
}

}  // namespace leat::core
