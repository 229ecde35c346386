// The systems that Harpagon is compared with, beside the exact planner.
#include "planner/papers/harpagon_systems.h"

#include <gtest/gtest.h>

#include "planner/test/harpagon_workloads.h"

namespace leat::planner {
namespace {

TEST(HarpagonSystems, NoneIsCheaperOrLateAndAllServeTheRate) {
  for (std::uint32_t i = 0; i < 60; ++i) {
    const HarpagonProblem problem = harpagon_workload(7, i);
    const HarpagonPlan best = cheapest_plan(problem);
    ASSERT_TRUE(best.feasible());
    for (const HarpagonSystem& system : harpagon_systems()) {
      const HarpagonPlan plan = plan_with(system, problem);
      if (!plan.feasible()) continue;
      EXPECT_GE(plan.cost, best.cost * (1 - 1e-7)) << system.name << " workload " << i;
      EXPECT_LE(plan.latency_s, problem.slo_s * (1 + 1e-6)) << system.name << " workload " << i;
      for (std::size_t m = 0; m < plan.modules.size(); ++m) {
        double served = 0;
        for (const Tuple& t : plan.modules[m].tuples) served += t.rate_rps();
        EXPECT_GE(served, problem.modules[m].rate_rps * (1 - 1e-6)) << system.name << " workload " << i;
        if (system.tuples != 0) {
          EXPECT_LE(plan.modules[m].tuples.size(), system.tuples) << system.name;
        }
        for (const Tuple& t : plan.modules[m].tuples)
          EXPECT_TRUE(system.batching || t.configuration.batch == 1) << system.name;
      }
    }
  }
}

TEST(HarpagonSystems, AnImpossibleObjectiveIsAValue) {
  HarpagonProblem problem = harpagon_workload(1, 0);
  problem.slo_s = 0.001;
  for (const HarpagonSystem& system : harpagon_systems())
    EXPECT_FALSE(plan_with(system, problem).feasible()) << system.name;
}

}  // namespace
}  // namespace leat::planner
