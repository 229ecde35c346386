// Nexus's drop rule, as PARD's section 5.1 describes it.
#pragma once

#include "engine/papers/budgets.h"

namespace leat::papers {

// Nexus: the first window of a batch's length, in arrival order, all of which ends in time; what stands before it goes.
// In time: by the deadline, or within the module's own share of the SLO (section 5.1 of PARD speaks of the current
// module's).
class NexusWindow final : public DropRule {
 public:
  NexusWindow(Site& site, bool local) : site_(site), local_(local) {}
  void look_over(const TaskQueue& queue, const QueueConsumer& consumer, TimeNs start) noexcept override;
  [[nodiscard]] Reason judge(const Task& t, TimeNs start, TimeNs d) const noexcept override {
    return start + d > must_end(t) ? Reason::window : Reason::none;
  }
  void estimates(const Estimates& seen) noexcept override;
  void visit_state(Snapshot& state) override { state(shares_); }

 private:
  [[nodiscard]] TimeNs must_end(const Task& t) const noexcept;
  Site& site_;
  const bool local_;
  std::vector<Budgets> shares_;
};

}  // namespace leat::papers
