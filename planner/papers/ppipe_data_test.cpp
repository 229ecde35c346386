// PPipe's data: its stored plans, and what the solvers make of its scenarios.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "planner/papers/ppipe_scenarios.h"
#include "planner/papers/replicated_pairs.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/solver.h"

namespace leat::planner {
namespace {

// LEAT_DATA, else ../shared/data beside the source tree; empty: not here.
std::string ppipe_data() {
  const char* given = std::getenv("LEAT_DATA");
  const std::string root = given != nullptr ? given : std::string(LEAT_SOURCE_DIR) + "/../shared/data";
  const std::string path = root + "/ppipe";
  return std::filesystem::exists(path + "/scenarios.json") ? path : "";
}

class PpipeData : public testing::Test {
 protected:
  void SetUp() override {
    if (ppipe_data().empty()) GTEST_SKIP() << "PPipe's data is not here; set LEAT_DATA";
    auto read = read_scenarios(ppipe_data());
    ASSERT_TRUE(read.ok()) << read.error();
    set_ = std::move(*read);
  }
  ScenarioSet set_;
};

TEST_F(PpipeData, StoredPlansHoldUnderTheChecker) {
  PooledTolerance
      loose;  // their solver leaves counts up to 1e-5 off whole numbers, and adds latencies below 1 us as they are
  loose.us = 1;
  loose.gpus = 1e-4;
  loose.rate = 2e-5;
  loose.slots_known = false;
  std::size_t checked = 0;
  for (const Scenario& s : set_.scenarios) {
    for (const auto& [method, plan] : s.plans) {
      if (s.family == "ablation" && method == "np") continue;  // other rules: no link caps
      EXPECT_EQ(problem_of(s.problem, plan, loose, method == "dart_r"), "") << s.id << " " << method;
      if (method == "ppipe") {
        EXPECT_NEAR(objective_of(s.problem, plan) / s.reference.at(method), 1, 2e-5) << s.id;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 100u);
}

TEST_F(PpipeData, MainScenariosAreSolvedToTheReferenceWithProof) {
  for (const Scenario& s : set_.scenarios) {
    if (s.family == "ablation") continue;
    const PooledSolution found = solve_pooled(s.problem);
    EXPECT_NEAR(found.certificate.objective / s.reference.at("ppipe"), 1, 1e-5) << s.id;
    EXPECT_EQ(found.certificate.gap, 0) << s.id;
    EXPECT_NEAR(found.whole_gpu_objective / s.whole_gpu_optimum, 1, 1e-5) << s.id;
    EXPECT_EQ(problem_of(s.problem, found.dnns, {}), "") << s.id;
  }
}

TEST_F(PpipeData, AblationIsWithinHalfAPercentOfItsBound) {
  for (const Scenario& s : set_.scenarios) {
    if (s.family != "ablation") continue;
    const PooledSolution found = solve_pooled(s.problem);
    EXPECT_GE(found.certificate.objective / s.reference.at("ppipe"), 1 - 1e-5) << s.id;
    EXPECT_LE(found.certificate.gap, 0.005) << s.id;
    EXPECT_EQ(problem_of(s.problem, found.dnns, {}), "") << s.id;
  }
}

TEST_F(PpipeData, LeatsRulesHoldAndAreNeverBelow) {
  for (const Scenario& s : set_.scenarios) {
    if (s.family != "maf19") continue;
    const PooledSolution free = solve_free(s.problem);
    EXPECT_EQ(problem_of_free(s.problem, free.dnns, {}), "") << s.id;
    EXPECT_GE(free.certificate.objective, s.reference.at("ppipe") * (1 - 1e-5)) << s.id;
  }
}

TEST_F(PpipeData, BaselinesEqualTheReference) {
  for (const Scenario& s : set_.scenarios) {
    if (s.family == "ablation") continue;
    const PooledSolution np = solve_whole_models(s.problem);
    EXPECT_NEAR(np.certificate.objective / s.reference.at("np"), 1, 1e-5) << s.id;
    const PooledSolution pairs = solve_replicated_pairs(s.problem, gpus_taken(s.problem, s.plans.at("np")));
    EXPECT_NEAR(pairs.certificate.objective / s.reference.at("dart_r"), 1, 1e-5) << s.id;
    EXPECT_EQ(problem_of(s.problem, pairs.dnns, {}, true), "") << s.id;
  }
}

}  // namespace
}  // namespace leat::planner
