// Queues: every module has partitions of its own. When one is free it takes a batch of what waits for the module, in
// the order of class and deadline.
//
//   queue_scheduler.cpp  the scheduler: who is next, how large a batch is, what goes into it, what is given up
//   forecast.cpp         what a batch will meet further on
//   fit.cpp              unequal partitions or requests
//   caps.cpp             batch caps from the plan
//   burst_caps.cpp       caps by the age of the backlog
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "engine/core/policy/canary.h"
#include "engine/core/policy/look_ahead/periodic.h"
#include "engine/core/policy/registry.h"

namespace leat::core {

// Batch caps of an application's modules from a certain age of its backlog on (burst_caps.cpp).
struct CapLevel {
  std::array<std::uint32_t, kMaxModulesPerApplication> cap{};
  std::array<std::int64_t, kMaxModulesPerApplication> ns_per_item{};
  double rate = 0;        // X: requests per ns that they carry
  TimeNs latency_ns = 0;  // L: of a full batch on the longest path
  TimeNs from_ns = 0;
};

class QueueScheduler final : public ComponentScheduler, private Starter {
 public:
  explicit QueueScheduler(const Making& from);

  bool next(PartitionId partition) noexcept override;
  void leftover(QueueId queue, ConsumerId refused) noexcept override;
  void started(std::uint32_t batch) noexcept override;
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;
  void visit_state(Snapshot& state) override { state(periodic_, canaries_, modules_, caps_, applications_); }

 private:
  using Weights = std::array<TimeNs, kMaxModulesPerApplication>;
  using Caps = std::array<std::uint32_t, kMaxModulesPerApplication>;
  struct ModuleRules {
    bool mixed = false;              // its consumers differ in speed, and fit.cpp says who takes what
    std::uint32_t cap = UINT32_MAX;  // of batches at present (burst_caps.cpp); each consumer's own holds besides
    TimeNs after_ns = 0;             // L_sub: what the batch that forms will meet after this module
    std::int64_t consumer_count = 0;
    std::int64_t ns_per_item = 0;  // 1 / its throughput at the planned batches
  };
  struct ApplicationRules {
    std::vector<CapLevel> levels;  // empty: caps do not change
    std::size_t level = 0;         // the present one
    bool burst = false;            // what has waited since burst_from_ns came at once (burst_caps.cpp)
    TimeNs burst_from_ns = 0;
    void visit_state(Snapshot& state) { state(level, burst, burst_from_ns); }
  };

  // queue_scheduler.cpp
  [[nodiscard]] const ApplicationRules& rules_of(std::uint32_t application) const noexcept;
  [[nodiscard]] ApplicationRules& rules_of(std::uint32_t application) noexcept {
    return const_cast<ApplicationRules&>(std::as_const(*this).rules_of(application));
  }
  [[nodiscard]] const TaskQueue& queue(QueueId id) const noexcept { return view_.queues[id]; }
  [[nodiscard]] const TaskQueue& queue_of(ModuleId m) const noexcept { return view_.queues[view_.queues.first(m)]; }
  [[nodiscard]] const QueueConsumer& consumer(ConsumerId id) const noexcept { return view_.queues.consumer(id); }
  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] const ModuleModel& fixed(ModuleId m) const noexcept { return view_.model.module(m); }
  [[nodiscard]] const ApplicationSpec& application(ModuleId m) const noexcept {
    return view_.topology().applications[fixed(m).application];
  }
  [[nodiscard]] TimeNs scaled(ModuleId m, TimeNs ns) const noexcept { return view_.load.module(m).scaled(ns); }
  [[nodiscard]] std::uint32_t room(const QueueConsumer& s) const noexcept { return view_.route(s.route).batch; }
  [[nodiscard]] std::uint32_t& own_cap(ConsumerId s) noexcept { return caps_[s - first_consumer_]; }
  [[nodiscard]] std::uint32_t own_cap(ConsumerId s) const noexcept { return caps_[s - first_consumer_]; }
  [[nodiscard]] std::uint32_t cap_of(ConsumerId s) const noexcept {
    return std::min(own_cap(s), modules_[queue(consumer(s).queue).module].cap);
  }
  template <class Do>  // every consumer of the module
  void each_consumer(ModuleId m, Do&& act) const {
    const TaskQueue& l = queue_of(m);
    for (ConsumerId v = l.first_consumer; v < l.first_consumer + l.consumers; ++v) act(v);
  }
  void start_chosen(ConsumerId consumer, TaskId lead, std::uint32_t requests) noexcept override;
  [[nodiscard]] std::uint32_t cap_for(ConsumerId consumer) const noexcept override { return own_cap(consumer); }
  bool try_consumer(ConsumerId consumer) noexcept;
  void launch(QueueId queue, ConsumerId consumer, TimeNs start, bool canary = false) noexcept;
  void make_queues(TaskQueues& queues);
  [[nodiscard]] bool largest_budget_first(const TaskQueue& queue, ConsumerId consumer) const noexcept;
  [[nodiscard]] std::uint32_t shrink(const TaskQueue& queue, ConsumerId consumer, TimeNs start,
                                     std::uint32_t target) const noexcept;
  void form(const TaskQueue& queue, ConsumerId consumer, TimeNs start, std::uint32_t target) noexcept;
  [[nodiscard]] Reason judge(const Task& task, TimeNs start, TimeNs d) const noexcept;
  [[nodiscard]] bool doubted(const Task& task, TimeNs start, TimeNs d) noexcept;
  [[nodiscard]] bool late(ConsumerId consumer, TaskId task) noexcept;
  [[nodiscard]] bool try_canary(PartitionId partition) noexcept;
  void purge_low_end(const TaskQueue& queue, TimeNs start, TimeNs d) noexcept;

  // fit.cpp
  void form_fitting(const TaskQueue& queue, ConsumerId consumer, TimeNs start, std::uint32_t target) noexcept;
  void cap_by_time(ModuleId module, TimeNs budget) noexcept;

  // caps.cpp
  void plan_caps(std::uint32_t application);
  [[nodiscard]] double throughput(ModuleId module, std::uint32_t b) const;
  [[nodiscard]] TimeNs planned_run(ModuleId module, std::uint32_t b) const;
  [[nodiscard]] bool shares_partitions(ModuleId module) const;
  void search_caps(std::uint32_t application, const Caps& largest, Caps& best);
  void search_caps_in_step(std::uint32_t application, const Caps& largest, Caps& best) const;
  void set_caps(const ApplicationSpec& app, const Caps& best);

  // burst_caps.cpp
  void plan_ramp(std::uint32_t application);
  void ramp(std::uint32_t application) noexcept;
  [[nodiscard]] bool came_at_once(std::uint32_t application) noexcept;

  // forecast.cpp
  [[nodiscard]] TimeNs forecast(ModuleId from, std::uint32_t n, TimeNs d) const noexcept;

  const std::uint32_t latency_share_permille_;  // Policy::batch_latency_share_permille
  const LeatVariant variant_;
  Periodic periodic_;
  Canaries canaries_;
  ByModule<ModuleRules> modules_;
  const ConsumerId first_consumer_;
  std::vector<std::uint32_t> caps_;             // by consumer: items per batch
  std::vector<ApplicationRules> applications_;  // by the application's place in the component
};

}  // namespace leat::core
