#include "engine/papers/pard/overload_control.h"

namespace leat::papers {

OverloadControl::OverloadControl(Site& site, const Settings& settings, TimeNs window_ns)
    : site_(site),
      settings_(settings),
      queue_delay_(site.view.model, site.component),
      entries_(site.component.applications.size()) {
  for (ModuleId m : site.component.modules) queue_delay_[m] = SlidingWindow(window_ns);
}

bool OverloadControl::admit(std::uint32_t application) noexcept {
  constexpr TimeNs kEvery = 100'000'000;
  Entry& e = entries_[site_.place_of(application)];
  if (site_.view.now - e.controlled_ns >= kEvery) {
    e.controlled_ns = site_.view.now;
    bool over = false;
    for (ModuleId m : site_.view.topology().applications[application].modules) {
      queue_delay_[m].roll(site_.view.now);
      over = over || queue_delay_[m].mean() > settings_.threshold_ns;
    }
    e.admit_permille = over ? e.admit_permille * (1000 - settings_.alpha_permille) / 1000
                            : std::min(1000u, e.admit_permille + settings_.alpha_permille);
    e.admit_permille = std::max(e.admit_permille, 10u);
  }
  e.credit += e.admit_permille;
  if (e.credit < 1000) return false;
  e.credit -= 1000;
  return true;
}

void OverloadControl::started(const Batch& b) noexcept {
  SlidingWindow& delay = queue_delay_[b.module];
  delay.roll(site_.view.now);
  for (TaskId t = b.list.first; t != kNone; t = site_.task(t).next_in_batch)
    delay.add(site_.task(t).taken_ns - site_.task(t).queued_ns);
}

}  // namespace leat::papers
