// AccuMO (thesis, section 2.5.5): which of a client's tasks gets the next offloading, exactly. One offloading is under
// way at a time; the next begins when the last answer is back. The cost of a frame is, for every task,
//
//   weight * min(slope * x(stride), local)
//
// where `local` is what the task loses when a local algorithm runs instead of the tracker. Algorithm 1 enumerates all
// valid plans of the horizon; here the same minimum is found by dynamic programming over (time, last offloaded frame of
// each task), because plans that end in the same state cost the same from there on.
//
// Tables are made in the constructor, nothing is allocated afterwards. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/core/streams/strides.h"

namespace leat::core::streams {

inline constexpr std::uint32_t kGroupTasks = 4;
inline constexpr std::uint32_t kGroupHorizon = 60;  // frames

struct GroupTask {
  double slope = 0;                                        // drop per frame of stride
  double local = std::numeric_limits<double>::infinity();  // drop of the local algorithm; none: infinity
  double weight = 1;
  std::uint32_t latency = 1;  // frames from offloading until its answer serves, at least 1
  std::uint32_t age = 0;      // frames since the frame that its newest answer is of, now
  // An answer older than this is renewed first, whatever the plan: an estimate lives on answers.
  std::uint32_t oldest = 60;
};

class GroupPlanner {
 public:
  explicit GroupPlanner(const StrideCurve& curve = StrideCurve(), std::size_t states = 1u << 14);

  // The task that the current frame is offloaded for, by the plan of least cost over the next `horizon` frames; the
  // lower number among equals. A group of which every state does not fit the table gets the task that loses most now.
  // Preconditions: 1..kGroupTasks tasks, horizon 1..kGroupHorizon.
  [[nodiscard]] std::uint32_t next(std::span<const GroupTask> tasks, std::uint32_t horizon) noexcept;
  // Of the plan that next() has found.
  [[nodiscard]] double cost() const noexcept { return cost_; }
  [[nodiscard]] std::uint32_t transitions() const noexcept { return transitions_; }

 private:
  struct Cell {
    std::uint64_t key = 0;
    std::uint32_t mark = 0;  // of the call that it belongs to
    double cost = 0;
  };
  using Last = std::array<std::uint32_t, kGroupTasks>;  // 0: the answer it began with; otherwise 1 + time of offloading
  double rest(std::uint32_t at, const Last& last) noexcept;
  double after(std::uint32_t task, std::uint32_t at, const Last& last) noexcept;

  const StrideCurve curve_;
  std::vector<Cell> cells_;
  std::span<const GroupTask> tasks_;
  // Of task i shown at stride s for one frame, summed up from 0.
  std::array<std::array<double, 1024>, kGroupTasks> upto_{};
  std::uint32_t horizon_ = 0, mark_ = 0, used_ = 0, transitions_ = 0;
  double cost_ = 0;
};

// What a task loses per frame by now; the fall-back, and what a greedy rule goes by.
[[nodiscard]] double loss_now(const GroupTask& task, const StrideCurve& curve) noexcept;

}  // namespace leat::core::streams
