// Which waiting task is looked at first, and the load that decides it.
#include <algorithm>

#include "engine/core/policy/queued.h"

namespace leat::core {

// The highest class with tasks comes first; within it the order decides.
TaskId Queued::next_task(const Lane& lane, bool high_first) const noexcept {
  if (lane.classes == 0) return kNone;
  const std::uint8_t top = view_.top_class(lane);
  if (policy_.order == Order::fcfs) return lane.arrivals[top].front();
  return high_first ? lane.queue[top].back() : lane.queue[top].front();
}

// True: largest remaining budget first (HBF).
bool Queued::choose_order(const Lane& l, ServerId s) const noexcept {
  const ModuleRules& m = modules_[l.module];
  switch (policy_.order) {
    case Order::fcfs:
    case Order::lbf:
      return false;
    case Order::hbf:
      return true;
    case Order::adaptive:
    case Order::instant:
      return m.high_first;
    case Order::backlog: {
      if (l.classes == 0) return false;
      // What the freshest could spend waiting here.
      const TimeNs budget = task(l.queue[view_.top_class(l)].back()).deadline_ns - view_.now -
                            paced(l.module, server(s).run_ns[cap_of(s)]) - m.after_ns;
      const TimeNs drain = static_cast<TimeNs>(l.items) * paced(l.module, m.ns_per_item) * view_.lanes.count(l.module);
      // Largest first gives up the old for the sake of the fresh: right while the overload lasts. When it ends soon,
      // the fresh could have waited until then, and a young backlog may end soon.
      std::int64_t believed = 1000;
      const std::uint32_t a = fixed(l.module).application;
      const ApplicationSense& seen = view_.sense.application(a);
      const ApplicationRules& rules = rules_of(a);
      if (policy_.young_permille > 0 && rules.burst && rules.burst_from_ns == seen.backlog_ns) {
        const TimeNs grown = application(l.module).slo_ns / 1000 * policy_.young_permille;
        believed = std::min<std::int64_t>(1000, (view_.now - seen.backlog_ns) * 1000 / std::max<TimeNs>(1, grown));
      }
      return drain * believed > budget * policy_.backlog_permille;
    }
  }
  return false;
}

// PARD section 4.3. mu = T_in / T_m; adaptive switches outside 1 +- eps, eps = |T_in - T_smooth| / T_smooth; instant
// at 1.
void Queued::update_load(ModuleId id) noexcept {
  ModuleRules& m = modules_[id];
  if (policy_.order == Order::adaptive || policy_.order == Order::instant) {
    const std::int64_t in = m.arrivals.rate_millihertz(m.arrivals.bins_per(policy_.window_ns / 5));
    const std::int64_t smooth = m.arrivals.smooth_millihertz();
    const std::int64_t mu = in * 1000 / std::max<std::int64_t>(1, m.capacity_mhz);
    std::int64_t eps = 0;
    if (policy_.order == Order::adaptive && smooth > 0) eps = (in > smooth ? in - smooth : smooth - in) * 1000 / smooth;
    if (mu > 1000 + eps) m.high_first = true;
    if (mu < 1000 - eps) m.high_first = false;
  }
  if (policy_.live_queues && !policy_.forecast) {
    m.queue_delay.roll(view_.now);
    update_downstream(fixed(id).application);
  }
}

}  // namespace leat::core
