// Lanes: the queues of waiting tasks. A policy says at set-up which there are and which servers take from each, and on
// a task's arrival which it goes to; a task's life is the core's.
//
// A lane is a queue of tasks of one module. With late binding a module has one lane, served by all its partitions; with
// early binding one lane per (module, partition). A server is one (partition, route) that takes batches from one lane;
// a lane's servers stand in order of preference.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/ledger/ledger.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/queue/deadline_queue.h"

namespace leat::core {

using LaneId = std::uint32_t;
using ServerId = std::uint32_t;

struct Server {
  PartitionId partition = 0;
  RouteId route = 0;
  LaneId lane = 0;
  const TimeNs* run_ns = nullptr;   // [b]: all stages and transfers, b = 0..route.batch
  const TimeNs* safe_ns = nullptr;  // the same from p99
};

struct Lane {
  ModuleId module = 0;
  ServerId first_server = 0;
  std::uint32_t servers = 0;
  std::uint32_t idle_words = 0;  // offset of its bit set of available servers
  std::array<DeadlineQueue, kLevels> queue;
  std::array<ArrivalList, kLevels> arrivals;
  std::uint32_t classes = 0;           // bit: that level has tasks
  std::uint32_t tasks = 0, items = 0;  // queued, not counting `forming`
  TaskList forming;                    // taken, not sent yet
  TimeNs wake_ns = kNever;             // its policy wants to be asked again then
  bool dirty = false;
};

class Lanes {
 public:
  explicit Lanes(const Model& model);

  // ---- set-up ----
  // One more lane of that module; its servers' lane and tables are filled in.
  LaneId add(const Model& model, ModuleId module, std::span<const Server> servers);

  // ---- to read ----
  [[nodiscard]] const Lane& operator[](LaneId id) const noexcept { return lanes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }
  [[nodiscard]] const Server& server(ServerId id) const noexcept { return servers_[id]; }
  [[nodiscard]] std::size_t servers() const noexcept { return servers_.size(); }
  [[nodiscard]] LaneId first(ModuleId m) const noexcept { return of_module_[m].first; }
  [[nodiscard]] std::uint32_t count(ModuleId m) const noexcept { return of_module_[m].count; }
  [[nodiscard]] const std::vector<ServerId>& of_partition(PartitionId p) const noexcept { return of_partition_[p]; }
  [[nodiscard]] ServerId idle_server(const Lane& lane) const noexcept;  // the first that can take a batch; kNone

  // ---- to change ----
  [[nodiscard]] Lane& change(LaneId id) noexcept { return lanes_[id]; }
  void insert(Pool<Task>& tasks, TaskId id, LaneId lane) noexcept;
  void erase(Pool<Task>& tasks, TaskId id) noexcept;              // out of its lane's queue
  void form(Pool<Task>& tasks, LaneId lane, TaskId id) noexcept;  // erased before; into the lane's next batch
  void unform(Pool<Task>& tasks, LaneId lane, TaskId id) noexcept;
  void set_idle(PartitionId partition, bool idle) noexcept;

  void check(const Pool<Task>& tasks) const;

 private:
  struct OfModule {
    LaneId first = 0;
    std::uint32_t count = 0;
  };
  std::vector<Lane> lanes_;
  std::vector<Server> servers_;
  std::vector<OfModule> of_module_;
  std::vector<std::vector<ServerId>> of_partition_;
  std::vector<std::uint64_t> idle_;
};

}  // namespace leat::core
