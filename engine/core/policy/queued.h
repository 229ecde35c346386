// The discipline of queues: when a partition is free, one of its lanes, in order of class and deadline, gives it a
// batch. What each preset does at each step is one small function, chosen by its settings:
//
//   order.cpp       which waiting task is next          drop.cpp        when a task is given up
//   batching.cpp    how large a batch is, and when      placement.cpp   which lane, which server, which path
//   turns.cpp       Harpagon's dispatch                 fit.cpp         late binding on unequal partitions
//   caps.cpp        batch caps from the plan            ramp.cpp        caps by the age of the backlog
//   downstream.cpp  L_sub from averages                 forecast.cpp    L_sub from the present state
//   queued.cpp      the seam's operations, and what joins the rest
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "engine/core/policy/canary.h"
#include "engine/core/policy/periodic.h"
#include "engine/core/policy/seam.h"
#include "engine/core/sense/window.h"

namespace leat::core {

// Values for a range of indexes that begins anywhere.
template <class T>
class ByIndex {
 public:
  explicit ByIndex(std::uint32_t first) : first_(first) {}
  void resize(std::size_t n) { values_.resize(n); }
  [[nodiscard]] T& operator[](std::uint32_t i) noexcept { return values_[i - first_]; }
  [[nodiscard]] const T& operator[](std::uint32_t i) const noexcept { return values_[i - first_]; }

 private:
  std::uint32_t first_;
  std::vector<T> values_;
};

// Batch caps of an application's modules from a certain age of its backlog on (ramp.cpp).
struct CapLevel {
  std::array<std::uint32_t, kMaxModulesPerApplication> cap{};
  std::array<std::int64_t, kMaxModulesPerApplication> ns_per_item{};
  double rate = 0;        // X: requests per ns that they carry
  TimeNs latency_ns = 0;  // L: of a full batch on the longest path
  TimeNs from_ns = 0;
};

class Queued final : public Discipline, private Starter {
 public:
  Queued(const View& view, Verbs& can, const Component& component, const Policy& policy, Lanes& lanes);

  bool admit(std::uint32_t application) noexcept override;
  [[nodiscard]] bool keeps_late() const noexcept override { return policy_.drop == Drop::none; }
  [[nodiscard]] bool binds() const noexcept override { return policy_.binding == Binding::early; }
  LaneId enqueue(TaskId task) noexcept override;
  void left(TaskId task) noexcept override;
  ServerId offer(LaneId lane) noexcept override;
  bool next(PartitionId partition) noexcept override;
  void leftover(LaneId lane, ServerId refused) noexcept override;
  void started(std::uint32_t batch) noexcept override;
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;
  void estimates(const Estimates& estimates) noexcept override;

 private:
  using Weights = std::array<TimeNs, kMaxModulesPerApplication>;
  struct ModuleRules {
    std::uint32_t cap = UINT32_MAX;  // of batches at present (ramp.cpp); each server's own holds besides
    TimeNs planned_ns = 0;           // d at the planned batch, mean over servers
    TimeNs share_ns = 0;             // Clipper++: its part of the SLO
    TimeNs after_ns = 0;             // L_sub as the drop policy sees it: maximum over paths
    std::int64_t server_count = 1;
    std::int64_t ns_per_item = 0;   // 1 / its throughput at the planned batches
    std::int64_t capacity_mhz = 0;  // its throughput, items per 1000 s
    bool high_first = false;        // adaptive, instant: the present mode
    std::uint32_t turn = 0;         // rr: the lane whose turn it is
    Window queue_delay, arrivals;
    ModuleEstimate estimate;
  };
  struct LaneRules {
    bool mixed = false;            // its servers differ in speed, and fit.cpp says who takes what
    TimeNs queued_run_ns = 0;      // ELSA eq. 1: expected run time of what is queued here
    TimeNs next_start_ns = 0;      // tc, rr: when its server can start the batch after those assigned
    std::uint32_t block_left = 0;  // tc, tc_rates, rr: items still to come in this turn
    TimeNs block_from_ns = 0;      // tc: when its first came
    std::int64_t due_nano = 0;     // tc_rates: billionths of an item that its rate has earned and no turn has used
  };
  struct ServerRules {
    std::uint32_t cap = 1;        // items per batch
    std::int64_t ratio = 0;       // Harpagon's throughput-cost ratio, scaled
    TimeNs spacing_ns = 0;        // tc: from a start on this route to the first of a server that stood idle; 0: none
    bool padded = false;          // tc: its window brings no full batch; the plan counts on dummies
    std::int64_t earns_nano = 0;  // tc_rates: of an item that comes to its module, its part
  };
  struct ApplicationRules {
    std::vector<CapLevel> levels;  // empty: caps do not change
    std::size_t level = 0;         // the present one
    bool burst = false;            // what has waited since burst_from_ns came at once (ramp.cpp)
    TimeNs burst_from_ns = 0;
    std::uint32_t admit_permille = 1000;  // overload control
    std::uint32_t admit_credit = 0;
    TimeNs controlled_ns = 0;
  };

  // queued.cpp
  [[nodiscard]] const ApplicationRules& rules_of(std::uint32_t application) const noexcept;
  [[nodiscard]] ApplicationRules& rules_of(std::uint32_t application) noexcept {
    return const_cast<ApplicationRules&>(std::as_const(*this).rules_of(application));
  }
  [[nodiscard]] const Lane& lane(LaneId id) const noexcept { return view_.lanes[id]; }
  [[nodiscard]] const Server& server(ServerId id) const noexcept { return view_.lanes.server(id); }
  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] const ModuleModel& fixed(ModuleId m) const noexcept { return view_.model.module(m); }
  [[nodiscard]] const ApplicationSpec& application(ModuleId m) const noexcept {
    return view_.topology().applications[fixed(m).application];
  }
  [[nodiscard]] bool up(LaneId l) const noexcept {
    return view_.machine.partition(server(lane(l).first_server).partition).up;
  }
  [[nodiscard]] TimeNs paced(ModuleId m, TimeNs ns) const noexcept {
    return policy_.forecast ? view_.sense.module(m).paced(ns) : ns;
  }
  [[nodiscard]] std::uint32_t room(const Server& s) const noexcept { return view_.route(s.route).batch; }
  [[nodiscard]] std::uint32_t cap_of(ServerId s) const noexcept {
    return std::min(servers_[s].cap, modules_[lane(server(s).lane).module].cap);
  }
  template <class Do>  // every server of the module
  void each_server(ModuleId m, Do&& act) const {
    const ServerId first = lane(view_.lanes.first(m)).first_server;
    const Lane& last = lane(view_.lanes.first(m) + view_.lanes.count(m) - 1);
    for (ServerId v = first; v < last.first_server + last.servers; ++v) act(v);
  }
  void start_chosen(ServerId server, TaskId lead, std::uint32_t requests) noexcept override;
  [[nodiscard]] std::uint32_t cap_for(ServerId server) const noexcept override { return servers_[server].cap; }
  bool try_server(ServerId server) noexcept;
  bool plain_next(PartitionId partition) noexcept;
  void collect_ahead(LaneId lane) noexcept;
  void launch(LaneId lane, ServerId server, TimeNs start, bool canary = false) noexcept;
  void make_lanes(Lanes& lanes);

  // order.cpp
  [[nodiscard]] TaskId next_task(const Lane& lane, bool high_first) const noexcept;
  [[nodiscard]] bool choose_order(const Lane& lane, ServerId server) const noexcept;
  void update_load(ModuleId module) noexcept;

  // drop.cpp
  [[nodiscard]] Reason judge(const Task& task, TimeNs start, TimeNs d) const noexcept;
  [[nodiscard]] bool doubted(const Task& task, TimeNs start, TimeNs d) noexcept;
  [[nodiscard]] bool late(ServerId server, TaskId task) noexcept;
  [[nodiscard]] bool try_canary(PartitionId partition) noexcept;
  [[nodiscard]] TimeNs window_end(const Task& task) const noexcept;
  void slide_window(const Lane& lane, ServerId server, TimeNs start) noexcept;
  void purge_low_end(const Lane& lane, TimeNs start, TimeNs d) noexcept;

  // batching.cpp
  [[nodiscard]] std::uint32_t batch_target(LaneId lane, ServerId server, TimeNs start) noexcept;  // items; 0: not now
  [[nodiscard]] std::uint32_t shrink(const Lane& lane, ServerId server, TimeNs start,
                                     std::uint32_t target) const noexcept;
  void form(const Lane& lane, ServerId server, TimeNs start, std::uint32_t target) noexcept;
  [[nodiscard]] TimeNs last_safe_start(const Lane& lane, ServerId server, std::uint32_t items) const noexcept;

  // placement.cpp
  [[nodiscard]] LaneId place(ModuleId module, const Task& task) noexcept;
  [[nodiscard]] LaneId holding(LaneId chosen, const Task& task) const noexcept;

  // turns.cpp
  void plan_turns() noexcept;
  [[nodiscard]] LaneId next_in_turn(ModuleId module, const Task& task) noexcept;
  [[nodiscard]] LaneId next_by_window(ModuleId module, const Task& task) noexcept;
  [[nodiscard]] LaneId next_by_rate(ModuleId module, const Task& task) noexcept;
  void plan_rates() noexcept;
  [[nodiscard]] double planned_per_ns(ServerId server) const noexcept;
  [[nodiscard]] TimeNs collects_ns(ModuleId module, ServerId server) const noexcept;

  // fit.cpp
  void form_fitting(const Lane& lane, ServerId server, TimeNs start, std::uint32_t target) noexcept;
  void cap_by_time(ModuleId module, TimeNs budget) noexcept;

  // caps.cpp
  void plan_caps(std::uint32_t application);
  [[nodiscard]] double throughput(ModuleId module, std::uint32_t b) const;
  [[nodiscard]] TimeNs planned_run(ModuleId module, std::uint32_t b) const;
  [[nodiscard]] bool shares_partitions(ModuleId module) const;
  using Caps = std::array<std::uint32_t, kMaxModulesPerApplication>;
  void search_caps(std::uint32_t application, const Caps& largest, Caps& best);
  void set_caps(const ApplicationSpec& app, const Caps& best);

  // ramp.cpp
  void plan_ramp(std::uint32_t application);
  void ramp(std::uint32_t application) noexcept;
  bool came_at_once(std::uint32_t application) noexcept;

  // downstream.cpp, forecast.cpp
  void update_downstream(std::uint32_t application) noexcept;
  void split_slo(const ApplicationSpec& app, const Weights& weights) noexcept;
  [[nodiscard]] TimeNs forecast(ModuleId from, std::uint32_t n, TimeNs d) const noexcept;

  const Policy policy_;
  const bool follows_load_, follows_delay_;  // whether anything reads these windows
  Periodic periodic_;
  Canaries canaries_;
  ByModule<ModuleRules> modules_;
  ByIndex<LaneRules> lanes_;
  ByIndex<ServerRules> servers_;
  std::vector<ApplicationRules> applications_;  // by the application's place in the component
  std::uint64_t random_;
};

}  // namespace leat::core
