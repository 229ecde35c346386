// Layouts of a host's MIG GPUs that the exact search is compared with. Any thread; pure and deterministic.
#pragma once

#include "planner/mig/layout.h"

namespace leat::planner {

// From `start`: changes one GPU's layout at a time, each time the best change, while the served load grows.
LayoutChoice refined_layout(const LayoutSpace& space, LayoutChoice start, const SizeDemand& demand);
// All GPUs alike, cut into as many partitions of one size as fit and nothing else (PARIS's homogeneous servers).
// `layouts` is empty: it need not be maximal.
LayoutChoice homogeneous_layout(const LayoutSpace& space, std::uint32_t size, const SizeDemand& demand);

}  // namespace leat::planner
