#include "planner/io/plan_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::planner {
namespace {

PlanFile small_plan() {
  PlanFile f;
  f.applications.push_back(
      {"traffic", 50'000'000, 30, 1, {{"detect", "detector", {}, 1, 1}, {"plate", "ocr", {0}, 2.5, 8}}});
  f.plan.partitions.push_back({"cpu0", PartitionKind::cpu, "cpu:1", 1, 1, 1, 5, 1 << 30, 0, 0, "0"});
  f.plan.partitions.push_back({"gpu0/mps0", PartitionKind::mps, "V100", 2, 0.5, 2, 0, 0, 1, 0, "MPS 50%"});
  f.plan.hosts.push_back({10, 10});
  f.plan.routes.push_back(
      {0,
       0,
       2,
       31.25,
       {{0, 3, {0}, {{1000, 1200, 9}, {1500, 1600, 9}}, 4096}, {3, 5, {1}, {{10, 20, 0}, {30, 30, 1}}, 0}}});
  f.plan.routes.push_back({0, 1, 1, 80, {{0, 1, {1}, {{7, 7, 0}}, 0}}});
  f.plan.budget_ns = {{30'000'000, 20'000'000}};
  f.plan.certificate = {31.25, 32.5, 0.0384, "pool gpu0", "test", 0.125};
  return f;
}

TEST(PlanIo, RoundTripKeepsEveryField) {
  const PlanFile f = small_plan();
  ASSERT_EQ(problem_of(f), "");
  const std::string text = plan_to_json(f);
  const auto back = parse_plan(text, "p.json");
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(plan_to_json(*back), text);
  EXPECT_EQ(back->applications[0].modules[1].after, std::vector<std::uint32_t>{0});
  EXPECT_EQ(back->plan.partitions[1].kind, PartitionKind::mps);
  EXPECT_EQ(back->plan.partitions[0].memory_bytes, 1 << 30);
  EXPECT_EQ(back->plan.routes[0].stages[0].latency_by_batch[1].p99_ns, 1600);
  EXPECT_DOUBLE_EQ(back->plan.certificate.upper_bound, 32.5);
}

struct Broken {
  const char* name;
  void (*breaks)(PlanFile&);
  const char* says;
};

class PlanIoBroken : public testing::TestWithParam<Broken> {};

TEST_P(PlanIoBroken, IsRefusedInOneLineThatNamesTheKey) {
  PlanFile f = small_plan();
  GetParam().breaks(f);
  const auto back = parse_plan(plan_to_json(f), "p.json");
  ASSERT_FALSE(back.ok());
  EXPECT_THAT(back.error(), testing::StartsWith("p.json: "));
  EXPECT_THAT(back.error(), testing::HasSubstr(GetParam().says));
  EXPECT_THAT(back.error(), testing::Not(testing::HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, PlanIoBroken,
    testing::Values(
        Broken{"pool", [](PlanFile& f) { f.plan.routes[0].stages[1].pool = {9}; }, "routes[0].stages[1].pool"},
        Broken{"twice",
               [](PlanFile& f) {
                 f.plan.routes[0].stages[1].pool = {1, 1};
               },
               "twice"},
        Broken{"gap", [](PlanFile& f) { f.plan.routes[0].stages[1].first_block = 4; }, "first_block"},
        Broken{"batches", [](PlanFile& f) { f.plan.routes[0].stages[0].latency_by_batch.pop_back(); },
               "latency_by_batch"},
        Broken{"latency", [](PlanFile& f) { f.plan.routes[1].stages[0].latency_by_batch[0].p50_ns = -3; }, "p50_ns"},
        Broken{"module", [](PlanFile& f) { f.plan.routes[1].module = 7; }, "routes[1].module"},
        Broken{"application", [](PlanFile& f) { f.plan.routes[1].application = 7; }, "routes[1].application"},
        Broken{"name", [](PlanFile& f) { f.plan.partitions[1].name = "cpu0"; }, "partitions[1].name"},
        Broken{"share", [](PlanFile& f) { f.plan.partitions[1].share = 0; }, "partitions[1].share"},
        Broken{"host", [](PlanFile& f) { f.plan.partitions[0].host = 3; }, "partitions[0].host"},
        Broken{"budget", [](PlanFile& f) { f.plan.budget_ns[0].pop_back(); }, "budget_ns[0]"},
        Broken{"stages", [](PlanFile& f) { f.plan.routes[0].stages.clear(); }, "routes[0].stages"}),
    [](const auto& one) { return one.param.name; });

TEST(PlanIo, SyntaxErrorsNameTheLine) {
  const auto broken = parse_plan("{\n \"schema\": \"leat-plan/1\",\n oops\n}", "p.json");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error(), testing::StartsWith("p.json:3:"));
}

TEST(PlanIo, UnknownKeysAndSchemasAreRefused) {
  std::string text = plan_to_json(small_plan());
  text.replace(text.find("leat-plan/1"), 11, "leat-plan/9");
  EXPECT_THAT(parse_plan(text, "p").error(), testing::HasSubstr("leat-plan/1"));
  text = plan_to_json(small_plan());
  text.replace(text.find("\"transfer_bytes\""), 16, "\"transfer_bites\"");
  EXPECT_THAT(parse_plan(text, "p").error(), testing::HasSubstr("transfer_bites"));
}

TEST(PlanIo, AMissingFileIsOneLine) {
  const auto plan = read_plan("/does/not/exist.json");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error(), testing::StartsWith("/does/not/exist.json: cannot be read"));
}

TEST(PlanIo, TruncatedTextNeverCrashes) {
  const std::string text = plan_to_json(small_plan());
  for (std::size_t n = 0; n + 2 < text.size(); n += 7) EXPECT_FALSE(parse_plan(text.substr(0, n), "p").ok()) << n;
}

}  // namespace
}  // namespace leat::planner
