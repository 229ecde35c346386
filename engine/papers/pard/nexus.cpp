#include "engine/papers/pard/nexus.h"

namespace leat::papers {

void NexusWindow::estimates(const Estimates&) noexcept { split_as_planned(site_, shares_); }

TimeNs NexusWindow::must_end(const Task& t) const noexcept {
  return local_ ? std::min(t.give_up_ns, t.queued_ns + share_of(site_, shares_, t)) : t.give_up_ns;
}

void NexusWindow::look_over(const TaskQueue& l, const QueueConsumer& s, TimeNs start) noexcept {
  if (l.classes == 0) return;
  const ArrivalList& arrived = l.arrivals[site_.view.top_class(l)];
  for (;;) {
    const std::uint32_t size = std::min(site_.cap(s), l.items);
    if (size == 0) return;
    const TimeNs end = start + s.run_ns[size];
    TaskId last_late = kNone;
    TaskId t = arrived.front();
    for (std::uint32_t items = 0; t != kNone && items < size; items += site_.task(t).items, t = site_.task(t).newer) {
      if (end > must_end(site_.task(t))) last_late = t;
    }
    if (last_late == kNone) return;
    for (bool done = false; !done;) {
      const TaskId oldest = arrived.front();
      done = oldest == last_late;
      site_.core.drop(oldest, Reason::window);
      if (arrived.front() == kNone) return;
    }
  }
}

}  // namespace leat::papers
