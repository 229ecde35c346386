// Batch caps that grow with the age of the backlog.
//
// Large batches carry a higher rate X, but a request passes them later, after L. Of a burst of length T that meets an
// empty pipeline, caps with (X, L) bring about X (T + SLO - L) requests through in time: who is to be in time enters at
// most SLO - L after the burst's end. How long a burst will last is not known; that it lasts as long again as it has
// lasted. The caps at age T are those of the plan that maximises X (T + SLO - L): an upper envelope of lines over T,
// made once. A sustained overload soon has the caps of the highest rate.
//
// The age is counted from when something began to wait at some module, over gaps shorter than one request takes at the
// slowest module.
#include <algorithm>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {

// Leaves of an application's levels, which hold every plan with its rate and latency, the envelope, by age.
void QueueScheduler::plan_ramp(std::uint32_t application) {
  const ApplicationSpec& app = view_.topology().applications[application];
  ApplicationRules& a = rules_of(application);
  const auto at_once = [&](const CapLevel& l) { return l.rate * static_cast<double>(app.slo_ns - l.latency_ns); };
  const auto better = [&](const CapLevel& x, const CapLevel& y) {
    return x.rate != y.rate ? x.rate < y.rate : at_once(x) < at_once(y);
  };
  std::sort(a.levels.begin(), a.levels.end(), better);
  std::vector<CapLevel> envelope;
  for (CapLevel level : a.levels) {
    for (; !envelope.empty(); envelope.pop_back()) {
      const CapLevel& last = envelope.back();
      const double lead = at_once(last) - at_once(level);
      level.from_ns = lead <= 0                ? 0
                      : level.rate > last.rate ? static_cast<TimeNs>(std::min(1e18, lead / (level.rate - last.rate)))
                                               : kNever;
      if (level.from_ns > last.from_ns) break;
      level.from_ns = 0;
    }
    if (level.from_ns != kNever) envelope.push_back(level);
  }
  a.levels = std::move(envelope);
}

// A burst: within an SLO of its beginning an eighth of an SLO's work waits somewhere, and it came half again as fast as
// it can be served. An overload that grows more slowly is met better with the caps of the highest rate from its
// beginning.
bool QueueScheduler::came_at_once(std::uint32_t application) noexcept {
  ApplicationRules& a = rules_of(application);
  const TimeNs from = view_.load.application(application).backlog_ns, age = view_.now - from;
  if (a.burst_from_ns != from) a.burst = false;
  a.burst_from_ns = from;
  const ApplicationSpec& app = view_.topology().applications[application];
  if (a.burst || age > app.slo_ns) return a.burst;
  const TimeNs enough = std::max(app.slo_ns / 8, age / 2);
  for (ModuleId id : app.modules)
    a.burst = a.burst || view_.load.module(id).queued_items * scaled(id, modules_[id].ns_per_item) > enough;
  return a.burst;
}

void QueueScheduler::ramp(std::uint32_t application) noexcept {
  ApplicationRules& a = rules_of(application);
  if (a.levels.empty()) return;
  const TimeNs age = came_at_once(application) ? view_.now - view_.load.application(application).backlog_ns : kNever;
  const std::size_t before = a.level;
  while (a.level + 1 < a.levels.size() && a.levels[a.level + 1].from_ns <= age) ++a.level;
  while (a.level > 0 && a.levels[a.level].from_ns > age) --a.level;
  const ModuleId first = view_.topology().applications[application].modules.front();
  if (a.level == before && modules_[first].cap != UINT32_MAX) return;
  for (ModuleId m : view_.topology().applications[application].modules) {
    modules_[m].cap = a.levels[a.level].cap[m - first];
    modules_[m].ns_per_item = a.levels[a.level].ns_per_item[m - first];
  }
}

}  // namespace leat::core
