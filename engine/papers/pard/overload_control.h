// Admission in place of dropping.
#pragma once

#include "engine/papers/pard/sliding_window.h"
#include "engine/papers/queues.h"

namespace leat::papers {

// DAGOR, as PARD-oc describes it (Table 1): nothing is given up at its module. Where some module's mean queueing delay
// over the window exceeds the threshold, its application admits alpha less, ten times a second; below it, alpha more.
class OverloadControl final : public DropRule {
 public:
  struct Settings {
    TimeNs threshold_ns = 20'000'000;
    std::uint32_t alpha_permille = 50;
  };
  OverloadControl(Site& site, const Settings& settings, TimeNs window_ns);
  bool admit(std::uint32_t application) noexcept override;
  void started(const Batch& batch) noexcept override;
  void visit_state(Snapshot& state) override { state(queue_delay_, entries_); }

 private:
  struct Entry {
    std::uint32_t admit_permille = 1000, credit = 0;
    TimeNs controlled_ns = 0;
  };
  Site& site_;
  const Settings settings_;
  ByModule<SlidingWindow> queue_delay_;
  std::vector<Entry> entries_;  // by application
};

}  // namespace leat::papers
