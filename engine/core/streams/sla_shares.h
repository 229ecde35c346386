// How a group's SLA is divided among the leads of its modules (coordinator.h), so that together they cost the least.
//
// A part with the slope r, sent every L frames, loses about r L / 2, and costs c / L of a partition, where c is what
// one detection takes of a period. Least cost for a weighted sum of losses that is given:
//
//   weight_i loss_i  goes with  s_i = sqrt(weight_i r_i c_i),  and the cost is  (sum of s)^2 / (2 sum of weight loss)
//
// A part may run its local algorithm instead, which loses `local` and costs nothing. With at most kGroupTasks parts all
// ways to choose those are looked at. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/core/streams/group.h"

namespace leat::core::streams {

struct SlaPart {
  double weight = 1;
  double slope = 0;  // drop per frame
  double cost = 0;   // of a detection, in periods of its camera
  double local = 1;  // drop of its local algorithm; none: 1
};

// By part the drop that it may have, so that the weighted sum is `budget`; 1 where it runs its local algorithm.
// Precondition: 1..kGroupTasks parts, weights and slopes above 0.
[[nodiscard]] std::array<double, kGroupTasks> share_sla(std::span<const SlaPart> parts, double budget) noexcept;

}  // namespace leat::core::streams
