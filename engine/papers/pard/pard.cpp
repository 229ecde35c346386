#include "engine/papers/pard/pard.h"

namespace leat::papers {

ProactiveDrop::ProactiveDrop(Site& site, const Settings& settings)
    : site_(site), settings_(settings), modules_(site.view.model, site.component) {}

Reason ProactiveDrop::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  if (start + d + modules_[t.module].after_ns <= t.give_up_ns) return Reason::none;
  return t.give_up_ns > t.deadline_ns ? Reason::stale : Reason::unreachable;
}

// Ours: where L_sub is too high nothing would pass, and nobody would see that it is. So a task that only the averages
// of later modules condemn is let through ten times a second, when its module has nothing better to do.
bool ProactiveDrop::spares(const Task& t, TimeNs start, TimeNs d) noexcept {
  constexpr TimeNs kEvery = 100'000'000;
  const TimeNs now = site_.view.now;
  if (start > now || start + d + site_.view.model.module(t.module).min_after_ns > t.give_up_ns) return false;
  TimeNs& last = modules_[t.module].spared_ns;
  if (now - last < kEvery) return false;
  last = now;
  return true;
}

// Backwards through the DAG.
void ProactiveDrop::estimates(const Estimates& seen) noexcept {
  const Topology& t = site_.view.topology();
  for (std::uint32_t a : site_.component.applications) {
    const auto& modules = t.applications[a].modules;
    Budgets path{};  // of module i: q_i + d_i + what follows
    for (std::size_t i = modules.size(); i-- > 0;) {
      const ModuleId id = modules[i];
      const ModuleEstimate e = id < seen.modules.size() ? seen.modules[id] : ModuleEstimate{};
      const TimeNs d = site_.plans[id].run_ns;
      TimeNs after = 0;
      for (ModuleId next : t.modules[id].after) after = std::max(after, path[next - modules.front()]);
      path[i] = after;
      if (settings_.downstream != Downstream::none) path[i] += d;
      if (settings_.downstream == Downstream::all) {
        path[i] += e.queue_ns + (settings_.wait == Wait::upper ? d : 0);
        if (settings_.wait == Wait::quantile) after += e.wait_after_ns;
      }
      modules_[id].after_ns = after;
    }
  }
}

AdaptivePriority::AdaptivePriority(Site& site, TimeNs window_ns, bool instant)
    : Order(First::least_budget),
      site_(site),
      window_ns_(window_ns),
      instant_(instant),
      modules_(site.view.model, site.component) {
  for (ModuleId m : site.component.modules) modules_[m].arrivals = SlidingWindow(window_ns);
}

void AdaptivePriority::arrived(const Task& t) noexcept {
  if (modules_[t.module].arrivals.roll(site_.view.now)) update(t.module);
  modules_[t.module].arrivals.add(0, t.items);
}

void AdaptivePriority::update(ModuleId id) noexcept {
  OfModule& m = modules_[id];
  const std::int64_t in = m.arrivals.rate_millihertz(m.arrivals.bins_per(window_ns_ / 5));
  const std::int64_t smooth = m.arrivals.smooth_millihertz();
  const std::int64_t mu = in * 1000 / std::max<std::int64_t>(1, site_.plans[id].capacity_mhz);
  std::int64_t eps = 0;  // both in permille
  if (!instant_ && smooth > 0) eps = (in > smooth ? in - smooth : smooth - in) * 1000 / smooth;
  if (mu > 1000 + eps) m.largest_first = true;
  if (mu < 1000 - eps) m.largest_first = false;
}

}  // namespace leat::papers
