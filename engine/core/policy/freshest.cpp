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
    TimeNs news = t.news_ns;
    if (news == 0) {
      bound_ns += pace.each_ns * t.items;
      if (t.deadline_ns < bound_ns) return kNone;
      const Request& r = view.ledger.request(t.request);
      const TimeNs sent = view.ledger.stream(r.stream).sent_capture_ns;
      // It grows as it waits here, and not with how old the picture was when it came.
      news = sent == INT64_MIN ? kMostNewsNs : pace.start_ns - sent - (t.queued_ns - r.capture_ns);
    } else if (t.deadline_ns < pace.start_ns + pace.run_ns) {
      continue;  // it would be late
    }
    if (best != kNone && news < most) continue;
    best = id;  // of equals the later deadline: the fresher picture
    most = news;
  }
  return best;
}

}  // namespace leat::core
