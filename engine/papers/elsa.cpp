#include "engine/papers/elsa.h"

#include "engine/core/policy/path.h"

namespace leat::papers {

LaneId SlackPlacement::place(ModuleId m, const Task& t) noexcept {
  const LaneId first = site_.view.lanes.first(m), end = first + site_.view.lanes.count(m);
  const TimeNs left = t.deadline_ns - site_.view.now;
  LaneId best = kNone;
  TimeNs least = kNever;
  for (LaneId l = first; l < end; ++l) {  // ascending size
    if (!site_.up(l) || t.items > site_.cap(site_.server_of(l))) continue;
    const TimeNs wait = waits_.of(site_, l), run = site_.run_ns(l, t);
    if (left > alpha_permille_ * (wait + beta_permille_ * run / 1000) / 1000) return l;
    if (wait + run < least) {
      least = wait + run;
      best = l;
    }
  }
  return best != kNone ? best : first;  // nobody is up: it waits there until somebody is, or expires
}

LaneId LeastWait::place(ModuleId m, const Task&) noexcept {
  const LaneId first = site_.view.lanes.first(m), end = first + site_.view.lanes.count(m);
  LaneId best = first;
  TimeNs least = kNever;
  for (LaneId l = first; l < end; ++l) {
    if (!site_.up(l) || waits_.of(site_, l) >= least) continue;
    least = waits_.of(site_, l);
    best = l;
  }
  return best;
}

LaneId AnyPartition::place(ModuleId m, const Task&) noexcept {
  const LaneId first = site_.view.lanes.first(m), end = first + site_.view.lanes.count(m);
  LaneId chosen = first;
  std::uint32_t n = 0;
  for (LaneId l = first; l < end; ++l) {
    if (site_.up(l) && next_random(site_.random) % ++n == 0) chosen = l;
  }
  return chosen;
}

ServerId AnyPartition::offer(LaneId id) noexcept {
  const Lane& l = site_.lane(id);
  ServerId chosen = kNone;
  std::uint32_t n = 0;
  for (ServerId s = l.first_server; s < l.first_server + l.servers; ++s) {
    if (site_.view.idle(site_.server(s).partition) && next_random(site_.random) % ++n == 0) chosen = s;
  }
  return chosen;
}

}  // namespace leat::papers
