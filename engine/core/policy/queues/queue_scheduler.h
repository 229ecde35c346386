// Queues: every module has partitions of its own. When one is free it takes a batch of what waits for the module, in
// the order of class and deadline.
//
//   queue_scheduler.cpp  the scheduler's operations, and what joins the rest
//   batching.cpp         who is next, how large a batch is, and what goes into it
//   drop.cpp             when a task is given up
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
  void leftover(LaneId lane, ServerId refused) noexcept override;
  void started(std::uint32_t batch) noexcept override;
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;

 private:
  using Weights = std::array<TimeNs, kMaxModulesPerApplication>;
  using Caps = std::array<std::uint32_t, kMaxModulesPerApplication>;
  struct ModuleRules {
    bool mixed = false;              // its servers differ in speed, and fit.cpp says who takes what
    std::uint32_t cap = UINT32_MAX;  // of batches at present (burst_caps.cpp); each server's own holds besides
    TimeNs after_ns = 0;             // L_sub: what the batch that forms will meet after this module
    std::int64_t server_count = 0;
    std::int64_t ns_per_item = 0;  // 1 / its throughput at the planned batches
  };
  struct ApplicationRules {
    std::vector<CapLevel> levels;  // empty: caps do not change
    std::size_t level = 0;         // the present one
    bool burst = false;            // what has waited since burst_from_ns came at once (burst_caps.cpp)
    TimeNs burst_from_ns = 0;
  };

  // queue_scheduler.cpp
  [[nodiscard]] const ApplicationRules& rules_of(std::uint32_t application) const noexcept;
  [[nodiscard]] ApplicationRules& rules_of(std::uint32_t application) noexcept {
    return const_cast<ApplicationRules&>(std::as_const(*this).rules_of(application));
  }
  [[nodiscard]] const Lane& lane(LaneId id) const noexcept { return view_.lanes[id]; }
  [[nodiscard]] const Lane& lane_of(ModuleId m) const noexcept { return view_.lanes[view_.lanes.first(m)]; }
  [[nodiscard]] const Server& server(ServerId id) const noexcept { return view_.lanes.server(id); }
  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] const ModuleModel& fixed(ModuleId m) const noexcept { return view_.model.module(m); }
  [[nodiscard]] const ApplicationSpec& application(ModuleId m) const noexcept {
    return view_.topology().applications[fixed(m).application];
  }
  [[nodiscard]] TimeNs paced(ModuleId m, TimeNs ns) const noexcept { return view_.load.module(m).paced(ns); }
  [[nodiscard]] std::uint32_t room(const Server& s) const noexcept { return view_.route(s.route).batch; }
  [[nodiscard]] std::uint32_t& own_cap(ServerId s) noexcept { return caps_[s - first_server_]; }
  [[nodiscard]] std::uint32_t own_cap(ServerId s) const noexcept { return caps_[s - first_server_]; }
  [[nodiscard]] std::uint32_t cap_of(ServerId s) const noexcept {
    return std::min(own_cap(s), modules_[lane(server(s).lane).module].cap);
  }
  template <class Do>  // every server of the module
  void each_server(ModuleId m, Do&& act) const {
    const Lane& l = lane_of(m);
    for (ServerId v = l.first_server; v < l.first_server + l.servers; ++v) act(v);
  }
  void start_chosen(ServerId server, TaskId lead, std::uint32_t requests) noexcept override;
  [[nodiscard]] std::uint32_t cap_for(ServerId server) const noexcept override { return own_cap(server); }
  bool try_server(ServerId server) noexcept;
  void launch(LaneId lane, ServerId server, TimeNs start, bool canary = false) noexcept;
  void make_lanes(Lanes& lanes);

  // batching.cpp
  [[nodiscard]] bool largest_budget_first(const Lane& lane, ServerId server) const noexcept;
  [[nodiscard]] std::uint32_t shrink(const Lane& lane, ServerId server, TimeNs start,
                                     std::uint32_t target) const noexcept;
  void form(const Lane& lane, ServerId server, TimeNs start, std::uint32_t target) noexcept;

  // drop.cpp
  [[nodiscard]] Reason judge(const Task& task, TimeNs start, TimeNs d) const noexcept;
  [[nodiscard]] bool doubted(const Task& task, TimeNs start, TimeNs d) noexcept;
  [[nodiscard]] bool late(ServerId server, TaskId task) noexcept;
  [[nodiscard]] bool try_canary(PartitionId partition) noexcept;
  void purge_low_end(const Lane& lane, TimeNs start, TimeNs d) noexcept;

  // fit.cpp
  void form_fitting(const Lane& lane, ServerId server, TimeNs start, std::uint32_t target) noexcept;
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
  const ServerId first_server_;
  std::vector<std::uint32_t> caps_;             // by server: items per batch
  std::vector<ApplicationRules> applications_;  // by the application's place in the component
};

}  // namespace leat::core
