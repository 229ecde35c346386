// How large a batch is, and when it may start.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {
namespace {

std::uint32_t clip(std::uint32_t items, const Server& server) { return std::clamp(items, 1u, server.cap); }

}  // namespace

// The last moment at which a batch of `items` may start so that the earliest deadline here is met.
TimeNs Scheduler::State::last_safe_start(const Lane& lane, const Server& server, std::uint32_t items) const noexcept {
  TimeNs earliest = kNever;
  for (std::uint32_t left = lane.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& queue = lane.queue[static_cast<std::size_t>(std::countr_zero(left))];
    earliest = std::min(earliest, tasks[queue.front()].deadline_ns);
  }
  if (earliest == kNever) return kNever;
  return earliest - server.run_ns[clip(items, server)] - modules[lane.module].after_least_ns;
}

std::uint32_t Scheduler::State::batch_target(Lane& lane, const Server& server, TimeNs start) noexcept {
  const std::uint32_t waiting = lane.items + lane.forming.items;
  if (waiting == 0) return 0;
  const auto wait_until = [&](TimeNs at) {
    lane.wake_ns = at;
    want_timer(at);
    return 0u;
  };
  switch (policy.batch) {
    case Batching::greedy:
      return std::min(waiting, cap_of(server));
    case Batching::single:
      return 1;
    case Batching::fill:
    case Batching::fixed: {
      if (waiting >= server.cap) return server.cap;
      const TimeNs safe = last_safe_start(lane, server, policy.batch == Batching::fixed ? server.cap : waiting + 1);
      return safe > now ? wait_until(safe) : waiting;
    }
    case Batching::search_down: {
      // PPipe section 5.4, step 2, on one partition: the largest batch that ends before the first deadline here.
      for (std::uint32_t n = server.cap; n >= 1; --n) {
        const TimeNs safe = last_safe_start(lane, server, n);
        if (safe < start) continue;
        if (waiting >= n) return n;
        const TimeNs until = last_safe_start(lane, server, std::min(waiting + 1, n));
        return until > now ? wait_until(until) : waiting;
      }
      return std::min(waiting, 1u);  // the oldest cannot be met: the drop policy decides
    }
    case Batching::reactive: {
      // The largest batch with which the oldest here keeps its module's own budget; no look at what is before or after.
      const ModuleState& m = modules[lane.module];
      const TaskId oldest = lane.arrivals[static_cast<std::size_t>(std::bit_width(lane.classes) - 1)].front();
      const TimeNs left = tasks[oldest].queued_ns + m.share_ns - start;
      std::uint32_t n = std::min(waiting, server.cap);
      while (n > 1 && server.run_ns[n] > left) --n;
      return n;
    }
  }
  return 0;
}

// What has been worked on upstream is not given up for the sake of a full batch: the largest batch, at least a part of the
// target, with which the earliest deadline here is still met. Entry modules keep the target.
std::uint32_t Scheduler::State::shrink(const Lane& lane, const Server& server, TimeNs start, std::uint32_t target) const noexcept {
  if (lane.classes == 0 || topology.modules[lane.module].before.empty()) return target;
  const std::uint32_t least = std::max(1u, target * policy.shrink_permille / 1000);
  const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
  const ModuleState& m = modules[lane.module];
  for (TaskId t = lane.queue[top].front(); t != kNone; t = tasks[t].after) {
    const TimeNs room = tasks[t].give_up_ns == kNever ? kNever : tasks[t].give_up_ns - start - m.after_ns;
    if (room < m.paced(server.run_ns[std::min(least, server.cap)])) continue;  // lost in any case
    std::uint32_t n = target;
    while (n > least && m.paced(server.run_ns[std::min(n, server.cap)]) > room) --n;
    return n;
  }
  return target;
}

// Moves up to `target` items from the queue into lane.forming, dropping what the policy condemns on the way.
void Scheduler::State::form(Lane& lane, const Server& server, TimeNs start, std::uint32_t target) noexcept {
  const bool high_first = choose_order(lane, server);
  const TimeNs d = modules[lane.module].paced(server.run_ns[policy.exact_duration ? clip(target, server) : server.cap]);
  if (policy.drop == Drop::window) slide_window(lane, server, start);
  const std::uint32_t room = topology.routes[server.route].batch;
  while (lane.forming.items < target) {
    const TaskId id = next_task(lane, high_first);
    if (id == kNone || lane.forming.items + tasks[id].items > room) break;
    const Reason reason = verdict(tasks[id], lane, start, d);
    if (reason != Reason::none && !probe(tasks[id], start, d)) {
      drop_request(tasks[id].request, Outcome::dropped, reason, lane.module);
      continue;
    }
    take(lane, id);
  }
  if (high_first) purge_low_end(lane, start, d);
}

}  // namespace leat::core
