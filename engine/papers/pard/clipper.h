// Clipper++, and PARD's ablation that splits the SLO anew (PARD, section 5.1 and Table 1).
#pragma once

#include "engine/papers/budgets.h"

namespace leat::papers {

// Clipper++ (PARD section 5.1): the SLO is split over the modules in proportion to d_k, or as the plan's budgets say; a
// task that has used up its module's share is given up. Two readings: what it has used until its batch starts, or that
// and the batch's execution.
class ClipperSplit final : public DropRule {
 public:
  enum class Reading : std::uint8_t { elapsed, elapsed_and_execution };
  ClipperSplit(Site& site, Reading reading) : site_(site), reading_(reading) {}
  [[nodiscard]] Reason judge(const Task& t, TimeNs start, TimeNs d) const noexcept override;
  void estimates(const Estimates& seen) noexcept override;
  void visit_state(Snapshot& state) override { state(shares_); }

 private:
  Site& site_;
  const Reading reading_;
  std::vector<Budgets> shares_;  // by application, in the component's order; made once
};

// PARD-WCL (Table 1): Clipper++ with execution, the SLO split by each module's recent worst latency; at least a planned
// batch: a module without a share would drop everything, and then never be seen to need one.
class WorstCaseSplit final : public DropRule {
 public:
  explicit WorstCaseSplit(Site& site) : site_(site) {}
  [[nodiscard]] Reason judge(const Task& t, TimeNs start, TimeNs d) const noexcept override;
  void estimates(const Estimates& seen) noexcept override;
  void visit_state(Snapshot& state) override { state(shares_); }

 private:
  Site& site_;
  std::vector<Budgets> shares_;
};

}  // namespace leat::papers
