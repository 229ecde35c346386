// What lies after a module, from averages of the recent past: L_sub, and shares of the SLO.
#include <algorithm>

#include "engine/core/policy/queued.h"

namespace leat::core {

// L_sub of every module, backwards through the DAG (maximum over paths): sums of q and d by Policy::downstream, plus
// W_k.
void Queued::update_downstream(std::uint32_t application) noexcept {
  const ApplicationSpec& app = view_.topology().applications[application];
  Weights path{};  // of module i: q_i + d_i + what follows
  const ModuleId first = app.modules.front();
  for (std::size_t i = app.modules.size(); i-- > 0;) {
    const ModuleId id = app.modules[i];
    ModuleRules& m = modules_[id];
    m.after_ns = 0;
    for (ModuleId next : view_.topology().modules[id].after) m.after_ns = std::max(m.after_ns, path[next - first]);
    const TimeNs queue = policy_.live_queues ? m.queue_delay.mean() : m.estimate.queue_ns;
    path[id - first] = m.after_ns;
    if (policy_.downstream != Downstream::none) path[id - first] += m.planned_ns;
    if (policy_.downstream == Downstream::all) {
      path[id - first] += queue + (policy_.wait == WaitEstimate::upper ? m.planned_ns : 0);
      if (policy_.wait == WaitEstimate::quantile) m.after_ns += m.estimate.wait_after_ns;
    }
  }
  if (policy_.drop != Drop::dynamic_split) return;
  // PARD-WCL: by recent worst latency, and at least a planned batch: a module without a share would drop everything,
  // and then never be seen to need one.
  Weights worst{};
  for (ModuleId id : app.modules) worst[id - first] = std::max(modules_[id].planned_ns, modules_[id].estimate.worst_ns);
  split_slo(app, worst);
}

// Shares of the SLO in proportion to `weights` [module within its application] on the longest path.
void Queued::split_slo(const ApplicationSpec& app, const Weights& weights) noexcept {
  const ModuleId first = app.modules.front();
  const TimeNs longest = std::max<TimeNs>(1, longest_path(view_.topology(), app, weights));
  for (ModuleId m : app.modules) {
    modules_[m].share_ns = static_cast<TimeNs>(static_cast<double>(app.slo_ns) *
                                               static_cast<double>(weights[m - first]) / static_cast<double>(longest));
  }
}

}  // namespace leat::core
