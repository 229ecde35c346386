#include "engine/core/streams/group.h"

#include <algorithm>

namespace leat::core::streams {

double loss_now(const GroupTask& task, const StrideCurve& curve) noexcept {
  return task.weight * std::min(task.slope * curve.at(task.age), task.local);
}

GroupPlanner::GroupPlanner(const StrideCurve& curve, std::size_t states) : curve_(curve), cells_(states) {}

std::uint32_t GroupPlanner::next(std::span<const GroupTask> tasks, std::uint32_t horizon) noexcept {
  tasks_ = tasks.first(std::min<std::size_t>(tasks.size(), kGroupTasks));
  horizon_ = std::clamp<std::uint32_t>(horizon, 1, kGroupHorizon);
  ++mark_;
  used_ = transitions_ = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const GroupTask& task = tasks_[i];
    double sum = 0;
    // Strides that occur: those from its age on, and those from 0 on.
    for (std::uint32_t s = 0; s < upto_[i].size(); ++s) {
      upto_[i][s] = sum;
      sum += task.weight * std::min(task.slope * curve_.at(s), task.local);
    }
  }
  std::uint32_t best = 0;
  cost_ = std::numeric_limits<double>::infinity();
  const Last last{};
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    const double cost = after(task, 0, last);
    if (cost < cost_ - 1e-12) {  // what rounding makes of equals is no less
      cost_ = cost;
      best = task;
    }
  }
  for (std::uint32_t task = 0; task < tasks_.size(); ++task)
    if (tasks_[task].age > tasks_[task].oldest) return task;
  if (used_ < cells_.size()) return best;
  for (std::uint32_t task = best = 0; task < tasks_.size(); ++task)
    if (loss_now(tasks_[task], curve_) > loss_now(tasks_[best], curve_)) best = task;
  return best;
}

// From offloading `task` at `at` to the end.
double GroupPlanner::after(std::uint32_t task, std::uint32_t at, const Last& last) noexcept {
  ++transitions_;
  const std::uint32_t back = std::min(at + std::max(1u, tasks_[task].latency), horizon_);
  double cost = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const std::uint32_t stride = last[i] == 0 ? std::min(tasks_[i].age, 900u) + at : at + 1 - last[i];
    cost += upto_[i][stride + (back - at)] - upto_[i][stride];
  }
  if (back == horizon_) return cost;
  Last next = last;
  next[task] = at + 1;
  return cost + rest(back, next);
}

double GroupPlanner::rest(std::uint32_t at, const Last& last) noexcept {
  std::uint64_t key = at;
  for (const std::uint32_t each : last) key = key << 6 | each;
  key |= 1ull << 63;
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
  std::size_t slot = static_cast<std::size_t>(mixed >> 32) % cells_.size();
  while (cells_[slot].mark == mark_ && cells_[slot].key != key) slot = slot + 1 == cells_.size() ? 0 : slot + 1;
  if (cells_[slot].mark == mark_) return cells_[slot].cost;
  if (used_ + 1 >= cells_.size()) {
    used_ = static_cast<std::uint32_t>(cells_.size());  // given up: next() sees it
    return 0;
  }
  // Taken before its cost is known: what is found below it is of later times, so nothing looks for it meanwhile.
  cells_[slot].mark = mark_;
  cells_[slot].key = key;
  ++used_;
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) best = std::min(best, after(task, at, last));
  cells_[slot].cost = best;
  return best;
}

}  // namespace leat::core::streams
