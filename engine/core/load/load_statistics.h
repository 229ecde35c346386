// What the core observes and policies may read: how fast modules really run, what waits and runs at each, since when an
// application has a backlog, and samples for the estimator. Everything here is counted by the core; what a policy makes
// of it is its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "engine/core/load/estimates.h"
#include "engine/core/load/far_off.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/snapshot.h"

namespace leat::core {

struct ModuleLoad {
  std::int64_t scale_ppm = 1'000'000;  // what its batches take of their profiled time, smoothed
  std::int64_t scale_permille = 1000;  // the same; 1000 while it is within 2 %
  std::uint32_t running = 0;           // batches
  std::int64_t running_items = 0, queued_items = 0;
  TimeNs running_end_sum = 0;  // expected ends of those batches
  FarOff far_off;
  TimeNs tried_planned_ns = 0, tried_ran_ns = 0;  // of a canary, its stages until now
  void started(const Batch& b) noexcept {
    ++running;
    running_items += b.list.items;
    running_end_sum += b.expected_end_ns;
  }
  [[nodiscard]] bool same_running(const ModuleLoad& o) const noexcept {
    return running == o.running && running_items == o.running_items && running_end_sum == o.running_end_sum;
  }
  [[nodiscard]] TimeNs scaled(TimeNs ns) const noexcept {
    return scale_permille == 1000 ? ns : ns * scale_permille / 1000;
  }
};

struct ApplicationLoad {
  std::int64_t queued_items = 0;      // at all its modules
  TimeNs backlog_ns = 0;              // since when something has waited, but for gaps shorter than gap_ns
  TimeNs emptied_ns = INT64_MIN / 2;  // when the last task that waited went
  TimeNs gap_ns = 0;                  // the slowest module's least time
};

class LoadStatistics {
 public:
  LoadStatistics(const Model& model, bool samples);

  // ---- to read ----
  [[nodiscard]] const ModuleLoad& module(ModuleId m) const noexcept { return modules_[m]; }
  [[nodiscard]] const ApplicationLoad& application(std::uint32_t a) const noexcept { return applications_[a]; }
  [[nodiscard]] bool samples() const noexcept { return !ring_.empty(); }

  // ---- to change ----
  void queued(const Model& model, ModuleId module, std::uint32_t items, TimeNs now) noexcept;
  void unqueued(const Model& model, ModuleId module, std::uint32_t items, TimeNs now) noexcept;
  void started(const Batch& b) noexcept { modules_[b.module].started(b); }
  void moved(const Batch& b, TimeNs later) noexcept { modules_[b.module].running_end_sum += later; }
  void ended(const Batch& b) noexcept;
  void learn(ModuleId module, TimeNs planned, TimeNs ran) noexcept;        // one batch's run
  void learn_canary(const Batch& b, TimeNs planned, TimeNs ran) noexcept;  // a stage of it
  void forget_scale(ModuleId module) noexcept;                             // as profiled, until it is learned again
  void take_over(const LoadStatistics& from) noexcept;  // of the plan before this one: latency scale, what runs
  void leave(const Sample& sample) noexcept;
  [[nodiscard]] std::size_t take_samples(std::span<Sample> out) noexcept;

  void audit() const;
  // Without the samples: nothing is decided by them here.
  void visit_state(Snapshot& state) { state(modules_, applications_); }

 private:
  static void set_scale(ModuleLoad& m, std::int64_t ppm) noexcept;
  std::vector<ModuleLoad> modules_;
  std::vector<ApplicationLoad> applications_;
  std::vector<std::uint32_t> application_of_;
  std::vector<Sample> ring_;  // empty where no policy needs estimates
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace leat::core
