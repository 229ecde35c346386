#include "engine/core/policy/freshest.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kMostLooks = 256;

}  // namespace

TaskId freshest(const StateView& view, const TaskQueue& queue, std::uint8_t level, const Pace& pace) noexcept {
  if (queue.replaced[level] == 0) return kNone;
  TaskId best = kNone;
  TimeNs most = 0, bound_ns = pace.start_ns + pace.run_ns;
  std::uint32_t looks = 0;
  for (TaskId id = queue.by_deadline[level].front(); id != kNone && looks < kMostLooks;
       id = view.tasks[id].after, ++looks) {
    const Task& t = view.tasks[id];
    TimeNs worth = t.turn_ns - pace.start_ns;
    if (t.turn_ns == 0) {
      bound_ns += pace.each_ns * t.items;
      if (t.deadline_ns < bound_ns) return kNone;
      const Request& r = view.ledger.request(t.request);
      // It grows as it waits here.
      worth = view.ledger.stream(r.stream).served.behind_ns(r.capture_ns) + (pace.start_ns - t.queued_ns);
    } else if (t.deadline_ns < pace.start_ns + pace.run_ns) {
      continue;  // it would be late
    }
    if (best != kNone && worth < most) continue;
    best = id;  // of equals the later deadline: the fresher picture
    most = worth;
  }
  return best;
}

}  // namespace leat::core
