// Model: what does not change while a plan is in force. Made off the scheduler's thread, never changed afterwards;
// batches that began under it keep it alive until they have ended.
//
// Component: applications that share partitions, directly or through others; and, where routes go from host to host,
// through a host's links. Components have nothing in common, so each has a scheduler of its own, and what one does
// never depends on another.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/model/topology.h"
#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

using ComponentId = std::uint32_t;

struct ModuleModel {
  std::uint32_t application = 0;
  std::uint32_t local = 0;               // index within its application
  std::uint32_t slot = 0;                // index within its component
  std::uint32_t branch_permille = 1000;  // < 1000: taken by chance
  std::uint32_t max_items = 1;           // the largest batch of its routes
  TimeNs min_ns = 0;                     // d(1) on its fastest partition
  TimeNs min_after_ns = 0;               // the same for all that comes after it, maximum over paths
  double unit_ns = 0;                    // its part of its application's cost_ns(), by item
  double lone_ns = 0;                    // the same in batches of one
};

struct Component {
  std::vector<std::uint32_t> applications;
  std::vector<ModuleId> modules;        // ascending
  std::vector<PartitionId> partitions;  // ascending
  bool pipelined = false;               // a route of several stages
  bool shared = false;                  // several modules on one partition, as first stages
};

class Model {
 public:
  explicit Model(const Topology& t);  // precondition: t.problem().empty()

  [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
  [[nodiscard]] const ModuleModel& module(ModuleId m) const noexcept { return modules_[m]; }
  [[nodiscard]] const std::vector<Component>& components() const noexcept { return components_; }
  [[nodiscard]] ComponentId component_of(ModuleId m) const noexcept { return of_application_[modules_[m].application]; }
  [[nodiscard]] ComponentId component_of_partition(PartitionId p) const noexcept { return of_partition_[p]; }  // kNone
  // What a request takes of its component's time, as if that were one partition, in batches that use half of the SLO.
  [[nodiscard]] TimeNs cost_ns(std::uint32_t application) const noexcept { return cost_[application]; }
  [[nodiscard]] TimeNs lone_cost_ns(std::uint32_t application) const noexcept { return lone_cost_[application]; }
  [[nodiscard]] std::uint32_t slot_of_partition(PartitionId p) const noexcept { return slot_of_partition_[p]; }
  // [b]: a whole route, transfers included, with a batch of b; b = 0 is b = 1.
  [[nodiscard]] const TimeNs* run_ns(RouteId r) const noexcept { return table_.data() + run_[r]; }
  [[nodiscard]] const TimeNs* safe_ns(RouteId r) const noexcept { return table_.data() + safe_[r]; }  // from p99
  // Both links are as fast as the slower end; nothing within a host.
  [[nodiscard]] TimeNs link_ns(std::int64_t bytes, PartitionId from, PartitionId to) const noexcept;

 private:
  void find_components();
  void make_tables();
  void measure_modules();
  void measure_costs();

  Topology topology_;
  std::vector<ModuleModel> modules_;
  std::vector<Component> components_;
  std::vector<ComponentId> of_application_, of_partition_;
  std::vector<std::uint32_t> slot_of_partition_;  // index within its component
  std::vector<TimeNs> cost_, lone_cost_;          // by application
  std::vector<TimeNs> table_;                     // run_ns and safe_ns of all routes
  std::vector<std::uint32_t> run_, safe_;
};

// A value for each module of one component.
template <class T>
class ByModule {
 public:
  ByModule(const Model& model, const Component& c) : model_(&model), values_(c.modules.size()) {}
  [[nodiscard]] T& operator[](ModuleId m) noexcept { return values_[model_->module(m).slot]; }
  [[nodiscard]] const T& operator[](ModuleId m) const noexcept { return values_[model_->module(m).slot]; }
  void visit_state(Snapshot& state) { state(values_); }

 private:
  const Model* model_;
  std::vector<T> values_;
};

// And for each partition.
template <class T>
class ByPartition {
 public:
  ByPartition(const Model& model, const Component& c) : model_(&model), values_(c.partitions.size()) {}
  [[nodiscard]] T& operator[](PartitionId p) noexcept { return values_[model_->slot_of_partition(p)]; }
  [[nodiscard]] const T& operator[](PartitionId p) const noexcept { return values_[model_->slot_of_partition(p)]; }
  void visit_state(Snapshot& state) { state(values_); }

 private:
  const Model* model_;
  std::vector<T> values_;
};

}  // namespace leat::core
