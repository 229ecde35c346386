// From configurations to what is started: cores, sessions, routes, plans that fit and that do not.
#include "engine/daemon/deployment/deployment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "planner/build/cpu_host.h"
#include "planner/io/plan_io.h"

namespace leat::daemon {
namespace {

constexpr const char* kTwoClasses = R"(
[[partition]]
name = "big"
kind = "emulated"
class = "L"
size = 2
[[partition]]
name = "small"
kind = "emulated"
count = 2
class = "S"
[[application]]
name = "a"
slo_ms = 50
  [[application.module]]
  name = "second"
  after = ["first"]
  latency_ms = [1.0]
  fan_out_cap = 7
  [[application.module]]
  name = "first"
  latency_ms = [2.0, 3.0]
  labels = [["cat", "dog"], ["red"]]
)";

Config parsed(const std::string& text) {
  auto config = parse_config(text, "test.toml");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error());
  return config.ok() ? *config : Config{};
}

TEST(Config, OrdersModulesAndKeepsTheirSettings) {
  const Config config = parsed(kTwoClasses);
  ASSERT_EQ(config.applications.size(), 1U);
  const auto& app = config.applications[0];
  EXPECT_EQ(app.application.modules[0].name, "first");
  EXPECT_EQ(app.application.modules[1].after, std::vector<std::uint32_t>{0});
  EXPECT_EQ(app.modules[0].batch, 2U);
  EXPECT_EQ(app.modules[0].labels, (std::vector<std::string>{"cat\tdog", "red"}));
  EXPECT_EQ(app.application.modules[1].fan_out_cap, 7U);
  ASSERT_EQ(config.partitions.size(), 3U);
  EXPECT_EQ(config.partitions[1].partition.name, "small0");
}

TEST(Deployment, ARouteForEachModuleAndClass) {
  const Config config = parsed(kTwoClasses);
  const std::uint32_t cores[] = {0, 1};
  auto d = deploy(config, cores);
  ASSERT_TRUE(d.ok()) << d.error();
  EXPECT_EQ(d->setups.size(), 3U);
  EXPECT_TRUE(d->setups[0].modules[1].after_fan_out);
  EXPECT_FALSE(d->setups[0].calibrate);
  ASSERT_TRUE(complete_plan(config, *d, std::vector<worker::Ready>(3)).ok());
  EXPECT_EQ(d->plan.routes.size(), 4U);
  EXPECT_EQ(core::Topology::from(d->plan, d->applications).problem(), "");
  EXPECT_TRUE(unschedulable(*d).empty());
}

// The names of head h are list 1 + h of the application's: the detector's list is the first, then the modules' in their
// order, named ones first; each module that names nothing has as many numbers as a detection has labels.
TEST(Deployment, LabellingHeadsAreNumberedOverTheModules) {
  const std::string modules[][2] = {{"boxes", "labels = [[\"car\", \"bus\"]]"},
                                    {"unnamed", "after = [\"boxes\"]"},
                                    {"shapes", "after = [\"boxes\"]\n  labels = [[\"a\", \"b\"], [\"c\"]]"},
                                    {"mute", "after = [\"boxes\"]"},
                                    {"colours", "after = [\"boxes\"]\n  labels = [[\"red\"]]"}};
  std::string text = "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n[[application]]\nname = \"a\"\nslo_ms = 50\n";
  for (const auto& [name, lines] : modules)
    text += "  [[application.module]]\n  name = \"" + name + "\"\n  latency_ms = [1.0]\n  " + lines + "\n";
  const Config config = parsed(text);
  const std::uint32_t cores[] = {0, 1};
  const auto d = deploy(config, cores);
  ASSERT_TRUE(d.ok()) << d.error();
  std::map<std::string, std::uint32_t> first;
  for (const auto& m : d->setups[0].modules) first[m.name] = m.first_head;
  EXPECT_EQ(first, (std::map<std::string, std::uint32_t>{
                       {"boxes", 0}, {"shapes", 0}, {"colours", 2}, {"unnamed", 3}, {"mute", 3 + LEAT_MAX_LABELS}}));
}

TEST(Deployment, BatchesThatAProfileLeavesOutAreFilledIn) {
  ModuleConfig module{.batch = 6};
  module.profile = {
      .model = "m",
      .blocks = 2,
      .boundary_bytes = {1},
      .rows = {{"cpu:1", 1, 1, {{100, 100, 9}, {50, 60, 9}}}, {"cpu:1", 1, 5, {{500, 500, 9}, {250, 300, 9}}}}};
  const planner::Partition partition{.partition_class = "cpu:1"};
  const auto latency = profiled(module, partition);
  ASSERT_EQ(latency.size(), 5U) << "nothing beyond the largest batch measured";
  for (std::size_t b = 1; b <= 5; ++b) EXPECT_EQ(latency[b - 1].p50_ns, static_cast<std::int64_t>(150 * b));
  EXPECT_EQ(latency[2].p99_ns, 480);
  EXPECT_TRUE(profiled(module, {.partition_class = "cpu:2"}).empty());
}

// Requests of a millisecond leave the scheduler thread little to do: every core is a partition. Requests of
// microseconds leave it much, and it gets a core.
TEST(Deployment, CpuAutoLeavesACoreToTheSchedulerWhereItNeedsOne) {
  const auto with = [](const std::string& latency_ms) {
    return parsed(
        "cpu = \"auto\"\n[[application]]\nname = \"a\"\nslo_ms = 5\n[[application.module]]\nname = \"m\"\n"
        "latency_ms = [" +
        latency_ms + "]\n");
  };
  const std::uint32_t four[] = {0, 1, 2, 3}, one[] = {0};
  auto d = deploy(with("1"), four);
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->partitions.size(), 4U);
  EXPECT_TRUE(d->scheduler_cores.empty()) << "wherever it comes to run first";
  EXPECT_FALSE(d->scheduler_alone);
  auto quick = deploy(with("0.01"), four);
  ASSERT_TRUE(quick.ok());
  EXPECT_EQ(quick->partitions.size(), 3U);
  EXPECT_EQ(quick->scheduler_cores, std::vector<std::uint32_t>{3});
  EXPECT_TRUE(quick->scheduler_alone);
  auto alone = deploy(with("0.01"), one);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->partitions.size(), 1U);
  EXPECT_FALSE(alone->scheduler_alone);
}

TEST(Deployment, CpuAutoIsCutAsThePlanSays) {
  const Config config = parsed(
      "cpu = \"auto\"\n[[application]]\nname = \"a\"\nslo_ms = 50\n[[application.module]]\nname = \"m\"\nlatency_ms = "
      "[1]\n");
  planner::PlanFile file;
  file.applications = {config.applications[0].application};
  for (planner::Partition& p : planner::cpu_partitions(std::vector<std::uint32_t>{0, 1, 2, 3}, 2, 1e9))
    file.plan.partitions.push_back(std::move(p));
  planner::Route route;
  route.rate_rps = 1;
  route.stages = {{.pool = {0, 1}, .latency_by_batch = {{1'000'000, 1'000'000}}}};
  file.plan.routes = {route};
  const std::uint32_t four[] = {0, 1, 2, 3}, two[] = {0, 1};
  const auto d = deploy(config, four, &file);
  ASSERT_TRUE(d.ok()) << d.error();
  ASSERT_EQ(d->partitions.size(), 2U);
  EXPECT_EQ(d->partitions[1].cores, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(d->partitions[1].partition.name, "cpu2");
  EXPECT_TRUE(d->scheduler_cores.empty());
  const auto smaller = deploy(config, two, &file);
  ASSERT_FALSE(smaller.ok());
  EXPECT_THAT(smaller.error(), ::testing::HasSubstr("core 2"));
}

constexpr const char* kSceneOnOnePartition = R"(
[[partition]]
name = "gpu"
kind = "emulated"
[[application]]
name = "scene"
slo_ms = 33
  [[application.module]]
  name = "det"
  latency_ms = [15.6]
  [[application.stream]]
  period_ms = 33
  max_age_ms = 66
  priority = "protected"
  count = 2
[[application]]
name = "report"
slo_ms = 800
  [[application.module]]
  name = "vlm"
  latency_ms = [98]
  [[application.stream]]
  period_ms = 500
  priority = "background"
)";

TEST(Deployment, ExpectedStreamsThatCannotBeServedAreSaid) {
  const std::uint32_t cores[] = {0};
  const auto said = [&](const std::string& text) {
    const Config config = parsed(text);
    auto d = deploy(config, cores);
    EXPECT_TRUE(d.ok() && complete_plan(config, *d, std::vector<worker::Ready>(2)).ok());
    return d.ok() ? unschedulable(*d) : std::vector<std::string>{};
  };
  std::string text = kSceneOnOnePartition;
  auto lines = said(text);
  ASSERT_EQ(lines.size(), 2U);  // 2 x 15.6 of 33 ms typically, 104 % with the margin
  EXPECT_EQ(lines[0].substr(0, 37), "tight: by p99 and margin periodic wor") << lines[0];
  EXPECT_NE(lines[1].find("'report/vlm' (98.0 ms) can never run beside 'scene/det'"), std::string::npos) << lines[1];
  text.replace(text.find("count = 2"), 9, "count = 3");
  lines = said(text);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("unschedulable: periodic work takes 142 % of partition gpu"), std::string::npos) << lines[0];
  text.replace(text.find("count = 3"), 9, "count = 1");
  text.replace(text.find("[[application]]"), 0, "[[partition]]\nname = \"share\"\nkind = \"emulated\"\n");
  EXPECT_TRUE(said(text).empty());  // the report can go to either
  EXPECT_FALSE(parse_config(std::string(kSceneOnOnePartition) + "colour = 3\n", "test.toml").ok());
}

TEST(Deployment, AnSloNobodyCanMeetIsSaid) {
  Config config = parsed(kTwoClasses);
  config.applications[0].application.slo_ns = 2'500'000;  // the chain needs 3 ms
  const std::uint32_t cores[] = {0};
  auto d = deploy(config, cores);
  ASSERT_TRUE(d.ok());
  ASSERT_TRUE(complete_plan(config, *d, std::vector<worker::Ready>(3)).ok());
  ASSERT_EQ(unschedulable(*d).size(), 1U);
  EXPECT_NE(unschedulable(*d)[0].find("'a'"), std::string::npos);
}

class PlanFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "leat-plan-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    config_ = parsed(kTwoClasses);
    auto d = deploy(config_, cores_);
    ASSERT_TRUE(d.ok());
    ASSERT_TRUE(complete_plan(config_, *d, std::vector<worker::Ready>(3)).ok());
    file_ = {.applications = d->applications, .plan = d->plan};
    config_.plan_path = folder_ + "/plan.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string refusal() {
    EXPECT_TRUE(planner::write_plan(config_.plan_path, file_).ok());
    auto d = deploy(config_, cores_);
    return d.ok() ? "" : d.error();
  }
  const std::uint32_t cores_[2] = {0, 1};
  std::string folder_;
  Config config_;
  planner::PlanFile file_;
};

TEST_F(PlanFileTest, ItsOwnPlanFits) {
  file_.plan.routes.erase(file_.plan.routes.begin() + 1);  // "first" runs on one class only
  EXPECT_EQ(refusal(), "");
  auto d = deploy(config_, cores_);
  EXPECT_TRUE(d->planned);
  std::size_t without = 0;
  for (const auto& sessions : d->session_of) without += sessions[0] == UINT32_MAX;
  EXPECT_GT(without, 0U) << "workers open only what is routed to them";
  EXPECT_TRUE(complete_plan(config_, *d, {}).ok());
}

TEST_F(PlanFileTest, AWorkerOpensTheBatchThatIsPlanned) {
  planner::Route& route = file_.plan.routes[0];
  route.batch = 5;
  route.stages[0].latency_by_batch.resize(5, route.stages[0].latency_by_batch.back());
  EXPECT_EQ(refusal(), "");
  auto d = deploy(config_, cores_);
  const std::uint32_t partition = route.stages[0].pool[0],
                      session = d->session_of[partition][d->first_module[route.application] + route.module];
  EXPECT_EQ(d->setups[partition].modules[session].batch, 5U) << "whatever the configuration's batch is";
}

TEST_F(PlanFileTest, AStrangePartitionIsNamed) {
  file_.plan.partitions[1].name = "elsewhere";
  EXPECT_NE(refusal().find("'elsewhere'"), std::string::npos);
}

TEST_F(PlanFileTest, AnotherClassIsNamed) {
  file_.plan.partitions[0].partition_class = "XL";
  EXPECT_NE(refusal().find("'XL'"), std::string::npos);
}

// "first" on the large partition and then on both small ones.
class StagedPlanTest : public PlanFileTest {
 protected:
  void SetUp() override {
    PlanFileTest::SetUp();
    auto& routes = file_.plan.routes;
    std::erase_if(routes, [](const planner::Route& r) { return r.module == 0; });
    const planner::Latency one{.p50_ns = 1'000'000, .p99_ns = 1'000'000}, two{.p50_ns = 1'500'000, .p99_ns = 1'500'000};
    routes.insert(
        routes.begin(),
        {.application = 0,
         .module = 0,
         .batch = 2,
         .rate_rps = 100,
         .stages = {
             {.first_block = 0, .end_block = 2, .pool = {0}, .latency_by_batch = {one, two}, .transfer_bytes = 1000},
             {.first_block = 2, .end_block = 3, .pool = {1, 2}, .latency_by_batch = {one, two}, .transfer_bytes = 0}}});
  }
  std::vector<planner::Stage>& stages() { return file_.plan.routes[0].stages; }
};

TEST_F(StagedPlanTest, EachWorkerOpensItsBlocksAndItsSideOfTheEdge) {
  ASSERT_EQ(refusal(), "");
  auto d = deploy(config_, cores_);
  ASSERT_EQ(d->edges.size(), 1U);
  EXPECT_EQ(name_of(d->edges[0], config_), "a/first cut 2");
  EXPECT_EQ(d->edges[0].from, std::vector<std::uint32_t>{0});
  EXPECT_EQ(d->edges[0].to, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(d->edges[0].spec.row_bytes, 1000U);
  EXPECT_EQ(d->edges[0].spec.scrap, 2U);
  EXPECT_GT(d->edges[0].spec.rows, 50U) << "what the slowest stage makes within the SLO, and batches";
  EXPECT_EQ(session(*d, 0, 0, 0, {0, 2}), 0U);
  EXPECT_EQ(session(*d, 1, 0, 0, {0, 2}), UINT32_MAX);
  const std::uint32_t behind = session(*d, 1, 0, 0, {2, UINT32_MAX});
  ASSERT_NE(behind, UINT32_MAX);
  const worker::ModuleSetup &first = d->setups[0].modules[0], &last = d->setups[1].modules[behind];
  EXPECT_EQ(first.edge_in, worker::kNoEdge);
  EXPECT_TRUE(d->setups[0].edges[first.edge_out].writes);
  EXPECT_EQ(last.edge_out, worker::kNoEdge);
  EXPECT_FALSE(d->setups[1].edges[last.edge_in].writes);
  EXPECT_EQ(last.latency_by_batch[1].p50_ns, 1'500'000) << "an emulated stage takes what is planned";
  EXPECT_EQ(core::Topology::from(d->plan, d->applications).problem(), "");
  EXPECT_TRUE(unschedulable(*d).empty());
}

TEST_F(StagedPlanTest, TheWayThroughAllStagesIsHeldAgainstTheSlo) {
  config_.applications[0].application.slo_ns = 2'500'000;  // 1 ms in each stage, 1 ms behind them
  ASSERT_EQ(refusal(), "");
  auto d = deploy(config_, cores_);
  ASSERT_EQ(unschedulable(*d).size(), 1U);
  EXPECT_NE(unschedulable(*d)[0].find("needs 3 ms on an idle host"), std::string::npos) << unschedulable(*d)[0];
}

TEST_F(StagedPlanTest, StagesOfOneModuleMayShareAPartition) {
  stages()[1].pool = {0, 1};
  ASSERT_EQ(refusal(), "");
  auto d = deploy(config_, cores_);
  EXPECT_NE(session(*d, 0, 0, 0, {0, 2}), session(*d, 0, 0, 0, {2, UINT32_MAX}));
  EXPECT_EQ(d->setups[0].edges.size(), 2U) << "mapped once for writing, once for reading";
}

TEST_F(StagedPlanTest, WhatCannotBeRunIsOneLine) {
  const auto says = [&](const std::string& words) {
    const std::string line = refusal();
    EXPECT_NE(line.find(words), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  };
  const auto good = file_;
  stages()[1].first_block = 1;
  says("stages[1].first_block: is 1; must be 2");
  stages()[1].first_block = 3, stages()[1].end_block = 4;
  says("stages[1].first_block: is 3; must be 2");
  file_ = good;
  stages()[0].transfer_bytes = 0;
  says("route 0: stage 0 hands nothing over");
  stages()[0].transfer_bytes = INT64_MAX / 2;
  says("limits.feature_mib = 1024 (a/first cut 2");
  stages()[0].transfer_bytes = 20'000'000;
  says("limits.feature_mib = 1024 (a/first cut 2");
  file_ = good;
  file_.plan.routes.push_back(file_.plan.routes[0]);
  file_.plan.routes.back().stages[0].transfer_bytes = 999;
  says("hands over 999 bytes an item at block 2, another route of the module 1000");
  file_ = good;
  config_.applications[0].modules[0].profile = {.model = "m",
                                                .blocks = 3,
                                                .boundary_bytes = {500, 1000},
                                                .cuts = {"x", "y"},
                                                .rows = {{"L", 1, 1, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}}}};
  EXPECT_EQ(refusal(), "");
  stages()[0].end_block = stages()[1].first_block = 1;
  says("stage 0 hands over 1000 bytes an item, but 500 by the profile");
  file_ = good;
  stages()[1].end_block = 4;
  says("its stages end at block 4, but the profile has 3");
}

TEST_F(StagedPlanTest, AModelWithoutCutsIsNamed) {
  auto& module = config_.applications[0].modules[0];
  module.executor = "onnx";
  for (auto& p : config_.partitions) p.partition.kind = planner::PartitionKind::cpu;
  for (auto& p : file_.plan.partitions) p.kind = planner::PartitionKind::cpu;
  EXPECT_NE(refusal().find("route 0: has 2 stages, but the module's profile does not say where its blocks meet"),
            std::string::npos)
      << refusal();
}

}  // namespace
}  // namespace leat::daemon
