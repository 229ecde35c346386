// Which waiting task is looked at first, and the load that decides it.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {

// The highest class with tasks comes first; within it the order decides.
TaskId Scheduler::State::next_task(const Lane& lane, bool high_first) const noexcept {
  if (lane.classes == 0) return kNone;
  const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
  if (policy.order == Order::fcfs) return lane.arrivals[top].front();
  return high_first ? lane.queue[top].back() : lane.queue[top].front();
}

// True: largest remaining budget first (HBF).
bool Scheduler::State::choose_order(Lane& lane, const Server& server) noexcept {
  const ModuleState& m = modules[lane.module];
  switch (policy.order) {
    case Order::fcfs:
    case Order::lbf:
      return false;
    case Order::hbf:
      return true;
    case Order::adaptive:
    case Order::instant:
      return m.high_first;
    case Order::backlog: {
      if (lane.classes == 0) return false;
      const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
      // What the freshest could spend waiting here.
      const TimeNs budget = tasks[lane.queue[top].back()].deadline_ns - now - m.paced(server.run_ns[cap_of(server)]) - m.after_ns;
      const TimeNs drain = static_cast<TimeNs>(lane.items) * m.paced(m.ns_per_item) * m.lanes;
      // Largest first gives up the old for the sake of the fresh: right while the overload lasts. When it ends soon, the fresh could have
      // waited until then, and a young backlog may end soon.
      std::int64_t believed = 1000;
      if (policy.young_permille > 0 && applications[m.application].burst) {
        const TimeNs grown = topology.applications[m.application].slo_ns / 1000 * policy.young_permille;
        believed = std::min<std::int64_t>(1000, (now - applications[m.application].backlog_ns) * 1000 / std::max<TimeNs>(1, grown));
      }
      return drain * believed > budget * policy.backlog_permille;
    }
  }
  return false;
}

// PARD section 4.3. mu = T_in / T_m; adaptive switches outside 1 +- eps, eps = |T_in - T_smooth| / T_smooth; instant at 1.
void Scheduler::State::update_load(ModuleId id) noexcept {
  ModuleState& m = modules[id];
  if (policy.order == Order::adaptive || policy.order == Order::instant) {
    const std::int64_t in = m.arrivals.rate_millihertz(m.arrivals.bins_per(1'000'000'000));
    const std::int64_t smooth = m.arrivals.smooth_millihertz();
    const std::int64_t mu = in * 1000 / std::max<std::int64_t>(1, m.capacity_mhz);
    std::int64_t eps = 0;
    if (policy.order == Order::adaptive && smooth > 0) eps = (in > smooth ? in - smooth : smooth - in) * 1000 / smooth;
    if (mu > 1000 + eps) m.high_first = true;
    if (mu < 1000 - eps) m.high_first = false;
  }
  if (policy.live_queues && !policy.forecast) {
    m.queue_delay.roll(now);
    update_downstream(m.application);
  }
}

}  // namespace leat::core
