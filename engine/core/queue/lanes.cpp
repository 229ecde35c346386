#include "engine/core/queue/lanes.h"

#include <bit>

namespace leat::core {

Lanes::Lanes(const Model& model)
    : of_module_(model.topology().modules.size()), of_partition_(model.topology().partitions.size()) {}

LaneId Lanes::add(const Model& model, ModuleId module, std::span<const Server> servers) {
  const auto id = static_cast<LaneId>(lanes_.size());
  if (of_module_[module].count++ == 0) of_module_[module].first = id;
  insist(of_module_[module].first + of_module_[module].count == id + 1, "a module's lanes stand side by side");
  Lane lane;
  lane.module = module;
  lane.first_server = static_cast<ServerId>(servers_.size());
  lane.servers = static_cast<std::uint32_t>(servers.size());
  lane.idle_words = static_cast<std::uint32_t>(idle_.size());
  idle_.resize(idle_.size() + (servers.size() + 63) / 64, 0);
  lanes_.push_back(lane);
  for (Server s : servers) {
    s.lane = id;
    s.run_ns = model.run_ns(s.route);
    s.safe_ns = model.safe_ns(s.route);
    of_partition_[s.partition].push_back(static_cast<ServerId>(servers_.size()));
    servers_.push_back(s);
  }
  return id;
}

ServerId Lanes::idle_server(const Lane& lane) const noexcept {
  for (std::uint32_t w = 0; w * 64 < lane.servers; ++w) {
    const std::uint64_t word = idle_[lane.idle_words + w];
    if (word != 0) return lane.first_server + w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return kNone;
}

void Lanes::insert(Pool<Task>& tasks, TaskId id, LaneId at) noexcept {
  Task& t = tasks[id];
  Lane& lane = lanes_[at];
  t.lane = at;
  t.state = TaskState::queued;
  lane.queue[t.level].insert(tasks.data(), id);
  lane.arrivals[t.level].push(tasks.data(), id);
  lane.classes |= 1u << t.level;
  ++lane.tasks;
  lane.items += t.items;
}

void Lanes::erase(Pool<Task>& tasks, TaskId id) noexcept {
  const Task& t = tasks[id];
  Lane& lane = lanes_[t.lane];
  lane.queue[t.level].erase(tasks.data(), id);
  lane.arrivals[t.level].erase(tasks.data(), id);
  if (lane.queue[t.level].empty()) lane.classes &= ~(1u << t.level);
  --lane.tasks;
  lane.items -= t.items;
}

void Lanes::form(Pool<Task>& tasks, LaneId at, TaskId id) noexcept {
  Task& t = tasks[id];
  TaskList& forming = lanes_[at].forming;
  t.lane = kNone;
  t.next_in_batch = kNone;
  t.batch = at;  // the lane it forms at, until it is sent
  (forming.last == kNone ? forming.first : tasks[forming.last].next_in_batch) = id;
  forming.last = id;
  ++forming.tasks;
  forming.items += t.items;
}

void Lanes::unform(Pool<Task>& tasks, LaneId at, TaskId id) noexcept {
  TaskList& list = lanes_[at].forming;
  TaskId previous = kNone;
  for (TaskId t = list.first; t != id; t = tasks[t].next_in_batch) previous = t;
  (previous == kNone ? list.first : tasks[previous].next_in_batch) = tasks[id].next_in_batch;
  if (list.last == id) list.last = previous;
  --list.tasks;
  list.items -= tasks[id].items;
}

void Lanes::set_idle(PartitionId id, bool idle) noexcept {
  for (ServerId s : of_partition_[id]) {
    const Lane& lane = lanes_[servers_[s].lane];
    const std::uint32_t bit = s - lane.first_server;
    std::uint64_t& word = idle_[lane.idle_words + bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    word = idle ? word | mask : word & ~mask;
  }
}

void Lanes::check(const Pool<Task>& tasks) const {
  for (const Lane& lane : lanes_) {
    std::size_t queued = 0;
    for (std::uint32_t c = 0; c < kLevels; ++c) {
      const std::size_t n = lane.queue[c].audit(tasks.data());
      insist(n != kNone && (n > 0) == ((lane.classes >> c & 1) != 0), "a lane's queue");
      queued += n;
    }
    insist(queued == lane.tasks, "a lane's number of tasks");
  }
}

}  // namespace leat::core
