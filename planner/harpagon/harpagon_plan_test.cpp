// An application and profiles in, a valid plan out.
#include <gtest/gtest.h>

#include "planner/harpagon/greedy.h"
#include "planner/harpagon/plan.h"
#include "planner/test/harpagon_workloads.h"

namespace leat::planner {
namespace {

Profile profile_of(const HarpagonModule& module, const std::vector<PricedClass>& classes) {
  Profile profile;
  profile.model = module.name;
  for (const Configuration& c : module.configurations) {
    const auto ns = static_cast<std::int64_t>(c.duration_s * 1e9);
    profile.rows.push_back({classes[c.hardware].partition_class, 1, c.batch, {{ns, ns, 1}}});
  }
  return profile;
}

TEST(HarpagonPlan, RoundTripOfAGeneratedWorkload) {
  const std::vector<PricedClass> classes = {{"p100", 1, 1.0}, {"v100", 1, 1.7}};
  for (std::uint32_t i = 0; i < 10; ++i) {
    const HarpagonProblem made = harpagon_workload(5, i);
    const Application application = application_of(made);
    std::vector<Profile> profiles;
    for (const HarpagonModule& m : made.modules) profiles.push_back(profile_of(m, classes));
    const auto problem = harpagon_problem(application, profiles, classes);
    ASSERT_TRUE(problem) << problem.error();
    const HarpagonPlan plan = cheapest_plan(*problem);
    ASSERT_TRUE(plan.feasible());
    EXPECT_NEAR(plan.cost, cheapest_plan(made).cost, 1e-4);
    const PlanFile file = harpagon_plan_file(application, *problem, plan, classes);
    EXPECT_EQ(problem_of(file), "");
    std::vector<double> rates(made.modules.size());
    for (const Route& route : file.plan.routes) rates[route.module] += route.rate_rps;
    for (std::size_t m = 0; m < rates.size(); ++m) EXPECT_GE(rates[m], made.modules[m].rate_rps * (1 - 1e-6));
  }
}

TEST(HarpagonPlan, RefusesWhatItCannotPlan) {
  const std::vector<PricedClass> classes = {{"p100", 1, 1.0}};
  const HarpagonProblem made = harpagon_workload(5, 1);
  Application application = application_of(made);
  EXPECT_FALSE(harpagon_problem(application, {}, classes));
  std::vector<Profile> profiles;
  for (const HarpagonModule& m : made.modules) profiles.push_back(profile_of(m, {{"a", 1, 1}, {"b", 1, 1}}));
  EXPECT_FALSE(harpagon_problem(application, profiles, classes));
  application.rate_rps = 0;
  EXPECT_FALSE(harpagon_problem(application, profiles, classes));
}

}  // namespace
}  // namespace leat::planner
