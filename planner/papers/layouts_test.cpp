#include "planner/papers/layouts.h"

#include <gtest/gtest.h>

#include "planner/mig/paris.h"
#include "planner/test/paris_workloads.h"

namespace leat::planner {
namespace {

TEST(Layouts, RefinedParisIsWithinThreePercentOfTheExactSearch) {
  for (std::uint32_t i = 0; i < 60; ++i) {
    const ParisWorkload w = paris_workload(1, i);
    const MigGeometry& g = *mig_table(w.geometry);
    const LayoutSpace space(g, profiles_for(g, 0), w.gpus);
    const SizeDemand d = size_demand(w.model, w.batch_share, space.compute_of_sizes(), w.sla_factor);
    const ParisResult wanted =
        paris(paris_problem(w.model, w.batch_share, space.compute_of_sizes(), g.compute_slices * w.gpus));
    const double best = space.best_layout(d).bound_rps;
    const LayoutChoice better = refined_layout(space, space.nearest_layout(wanted.instances, d), d);
    EXPECT_GE(better.served_rps, 0.97 * best) << i;
    EXPECT_LE(better.served_rps, best * (1 + 1e-9)) << i;
    for (std::uint32_t k = 0; k < space.profiles().size(); ++k)
      EXPECT_LE(homogeneous_layout(space, k, d).served_rps, best * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace leat::planner
