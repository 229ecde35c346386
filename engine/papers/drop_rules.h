// When a waiting task is given up, by the papers beside PARD's own rule (pard.h).
#pragma once

#include "engine/core/sense/window.h"
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

 private:
  Site& site_;
  std::vector<Budgets> shares_;
};

// Nexus: the first window of a batch's length, in arrival order, all of which ends in time; what stands before it goes.
// In time: by the deadline, or within the module's own share of the SLO (section 5.1 of PARD speaks of the current
// module's).
class NexusWindow final : public DropRule {
 public:
  NexusWindow(Site& site, bool local) : site_(site), local_(local) {}
  void look_over(const Lane& lane, const Server& server, TimeNs start) noexcept override;
  [[nodiscard]] Reason judge(const Task& t, TimeNs start, TimeNs d) const noexcept override {
    return start + d > must_end(t) ? Reason::window : Reason::none;
  }
  void estimates(const Estimates& seen) noexcept override;

 private:
  [[nodiscard]] TimeNs must_end(const Task& t) const noexcept;
  Site& site_;
  const bool local_;
  std::vector<Budgets> shares_;
};

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

 private:
  struct Entry {
    std::uint32_t admit_permille = 1000, credit = 0;
    TimeNs controlled_ns = 0;
  };
  Site& site_;
  const Settings settings_;
  ByModule<Window> queue_delay_;
  std::vector<Entry> entries_;  // by application
};

}  // namespace leat::papers
