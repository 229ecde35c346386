// Generated workloads for PARIS and ELSA. Deterministic for a seed on every machine. Any thread. Tests and studies
// only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/mig/analytic.h"
#include "planner/mig/layout.h"

namespace leat::planner {

struct ParisWorkload {
  std::string geometry;
  std::uint32_t gpus = 1;
  AnalyticModel model;
  std::vector<double> batch_share;
  double sla_factor = 1.5;
};
// The i-th of a seed: geometry among the tables, 1 to 8 GPUs, a model between light and heavy, a distribution, an SLA
// factor.
ParisWorkload paris_workload(std::uint64_t seed, std::uint32_t index);

LayoutChoice random_layout(const LayoutSpace& space, std::uint64_t seed, const SizeDemand& demand);

}  // namespace leat::planner
