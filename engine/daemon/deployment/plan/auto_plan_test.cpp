// A plan asked of leat-plan at start: what it is given, and that nothing it can do keeps leatd from starting.
#include "engine/daemon/deployment/plan/auto_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace leat::daemon {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kCascade = R"(
[daemon]
plan = "auto"
[[partition]]
name = "big"
kind = "emulated"
class = "L"
[[partition]]
name = "small"
kind = "emulated"
count = 3
class = "S"
[[application]]
name = "street"
slo_ms = 100
rate_rps = 200
  [[application.module]]
  name = "plate"
  after = ["detect"]
  items_per_request = 2
  latency_ms = [1.0, 1.5]
  [[application.module]]
  name = "detect"
  latency_ms = [4.0, 6.0, 8.0]
)";

class AutoPlan : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "auto-plan-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    auto config = parse_config(kCascade, "test.toml");
    ASSERT_TRUE(config.ok()) << config.error();
    config_ = *config;
    EXPECT_TRUE(config_.plan_auto);
    auto d = deploy(config_, cores_);
    ASSERT_TRUE(d.ok()) << d.error();
    deployment_ = std::move(*d);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // A solver that does what the script says.
  std::string script(const std::string& body) const {
    const std::string path = folder_ + "/solver";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    ::chmod(path.c_str(), 0700);
    return path;
  }
  const std::uint32_t cores_[2] = {0, 1};
  std::string folder_;
  Config config_;
  Deployment deployment_;
};

TEST_F(AutoPlan, IsDeployed) {
  const auto plan = auto_plan(config_, deployment_, LEAT_PLAN_BINARY, milliseconds(60'000));
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_GT(plan->file.plan.certificate.objective, 0);
  const auto d = deploy(config_, cores_, &plan->file);
  ASSERT_TRUE(d.ok()) << d.error();
  EXPECT_TRUE(d->planned);
  EXPECT_EQ(core::Topology::from(d->plan, d->applications).problem(), "");
  for (std::size_t m = 0; m < 2; ++m) {
    std::size_t routes = 0;
    for (const planner::Route& r : d->plan.routes) routes += r.module == m ? 1 : 0;
    EXPECT_GT(routes, 0U) << "module " << m;
  }
}

// A core for each module would leave the second idle: both run both, as without a plan.
TEST_F(AutoPlan, PartitionsAreSharedWhereThatCarriesMore) {
  auto config = parse_config(R"(
[daemon]
plan = "auto"
[[partition]]
name = "core"
kind = "emulated"
class = "L"
count = 2
[[application]]
name = "street"
slo_ms = 100
  [[application.module]]
  name = "detect"
  latency_ms = [1.35, 2.7, 4.05, 5.4]
  [[application.module]]
  name = "classify"
  after = ["detect"]
  items_per_request = 9
  fan_out_cap = 16
  latency_ms = [0.01, 0.013, 0.016, 0.019]
)",
                             "test.toml");
  ASSERT_TRUE(config.ok()) << config.error();
  const auto deployment = deploy(*config, cores_);
  ASSERT_TRUE(deployment.ok()) << deployment.error();
  const auto plan = auto_plan(*config, *deployment, LEAT_PLAN_BINARY, milliseconds(60'000));
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_GT(plan->file.plan.certificate.objective, 1000 / 1.35);  // what one core can detect
  const auto d = deploy(*config, cores_, &plan->file);
  ASSERT_TRUE(d.ok()) << d.error();
  for (const planner::Route& r : d->plan.routes) EXPECT_EQ(r.stages.at(0).pool.size(), 2U);
}

TEST_F(AutoPlan, AnSloThatNobodyMeetsIsSaidWithTheNearestOne) {
  config_.applications[0].application.slo_ns = 2'000'000;
  const auto plan = auto_plan(config_, deployment_, LEAT_PLAN_BINARY, milliseconds(60'000));
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error(), HasSubstr("'street'"));
  EXPECT_THAT(plan.error(), HasSubstr("nearest feasible"));
}

// Memory for one model a partition, and twice the rates that two partitions carry.
TEST_F(AutoPlan, RatesThatAreTooHighArePlannedForAsFarAsTheHostGoesWhereAPlanIsACondition) {
  const auto config = parse_config(R"(
[daemon]
plan = "auto"
[[partition]]
name = "core"
kind = "emulated"
count = 2
memory_mib = 100
[[application]]
name = "a"
slo_ms = 200
rate_rps = 200
  [[application.module]]
  name = "m"
  memory_mib = 100
  latency_ms = [10]
[[application]]
name = "b"
slo_ms = 200
rate_rps = 200
  [[application.module]]
  name = "m"
  memory_mib = 100
  latency_ms = [10]
)",
                                   "test.toml");
  ASSERT_TRUE(config.ok()) << config.error();
  const auto deployment = deploy(*config, cores_);
  ASSERT_TRUE(deployment.ok()) << deployment.error();
  const auto plan = auto_plan(*config, *deployment, LEAT_PLAN_BINARY, milliseconds(60'000), PlanNeed::condition);
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_THAT(plan->carried, HasSubstr("% of the stated rates"));
  EXPECT_THAT(plan->carried, ::testing::StartsWith("the host carries "));
  const auto d = deploy(*config, cores_, &plan->file);
  ASSERT_TRUE(d.ok()) << d.error();
  EXPECT_EQ(d->plan.routes.size(), 2U);
  const auto without = auto_plan(*config, *deployment, LEAT_PLAN_BINARY, milliseconds(60'000));
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error(), ::testing::StartsWith("infeasible: the host carries "));
}

TEST_F(AutoPlan, ASolverThatHangsDiesOrWritesNonsenseIsOneLine) {
  const auto failed = [&](const std::string& solver, milliseconds limit = milliseconds(60'000)) {
    const auto plan = auto_plan(config_, deployment_, solver, limit);
    EXPECT_FALSE(plan.ok());
    const std::string line = plan.ok() ? "" : plan.error();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  };
  EXPECT_THAT(failed(script("while :; do sleep 1000; done"), milliseconds(300)), HasSubstr("300 ms"));
  EXPECT_THAT(failed(script("echo 'glp_add_rows: nrs = -1' >&2; kill -ABRT $$")), HasSubstr("glp_add_rows"));
  EXPECT_THAT(failed(script("kill -KILL $$")), HasSubstr("Killed"));
  EXPECT_THAT(failed(script("exit 0")), HasSubstr("plan.json"));
  EXPECT_THAT(failed(script("while [ \"$1\" != -o ]; do shift; done; echo '{\"schema\": 7}' > \"$2\"")),
              HasSubstr("schema"));
  EXPECT_THAT(failed(folder_ + "/nothing"), HasSubstr("cannot be started"));
}

TEST_F(AutoPlan, AModuleThatNobodyMeasuredIsNamed) {
  config_.applications[0].modules[1].latency_by_batch.clear();
  const auto plan = auto_plan(config_, deployment_, LEAT_PLAN_BINARY);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error(), HasSubstr("'street.plate' has no profile"));
}

}  // namespace
}  // namespace leat::daemon
