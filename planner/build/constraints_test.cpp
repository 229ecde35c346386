// A user's constraints through build_plan: what the search keeps, what it says that it cannot, and GLPK's plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "planner/build/build_plan.h"
#include "planner/build/plan_checker.h"

namespace leat::planner {
namespace {

using testing::HasSubstr;

Profile whole_devices(const std::string& model, std::uint32_t blocks, double ms) {
  Profile p;
  p.model = model;
  p.blocks = blocks;
  p.boundary_bytes.assign(blocks - 1, 100'000);
  p.block_memory_bytes.assign(blocks, 10 << 20);
  for (const char* name : {"gpu", "cpu:1"})
    for (const std::uint32_t b : {1u, 2u, 4u}) {
      const auto ns = static_cast<std::int64_t>(ms * 1e6 * (name[0] == 'g' ? 0.6 + 0.4 * b : 2.0 * b));
      p.rows.push_back({name, 1, b, std::vector<Latency>(blocks, {ns, ns, 100})});
    }
  return p;
}

PlanRequest request(const std::string& constraints, bool glpk) {
  PlanRequest r;
  r.profiles = {whole_devices("detector", 2, 2), whole_devices("ocr", 2, 1)};
  r.applications = {{"traffic", 100'000'000, 0, 1, {{"detect", "detector", {}, 1, 1}, {"plate", "ocr", {0}, 2, 4}}}};
  auto host = parse_host(R"({"schema": "leat-host/1", "partitions": [
    {"kind": "gpu", "class": "gpu", "name": "gpu", "count": 3}, {"kind": "cpu", "class": "cpu:1", "count": 4}]})",
                         "host.json");
  EXPECT_TRUE(host.ok()) << host.error();
  r.host = std::move(*host);
  auto read = parse_constraints(constraints, "c.toml");
  EXPECT_TRUE(read.ok()) << read.error();
  r.constraints = std::move(*read);
  if (glpk)
    r.milp = [](const PooledProblem& p, const MilpRules& rules, std::span<const MilpRow> rows) {
      return solve_milp(p, rules, rows, std::chrono::milliseconds(20'000));
    };
  return r;
}

TEST(Constraints, ModelsKeptApartShareNoClass) {
  const PlanRequest r = request("[[apart]]\nmodels = [\"detector\", \"ocr\"]", true);
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible);
  EXPECT_FALSE(o->shared);
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
  EXPECT_TRUE(o->milp.proven);
  EXPECT_LE(o->solution.certificate.upper_bound, o->search_bound * (1 + 1e-9));
  EXPECT_NEAR(o->solution.certificate.gap, 0, 1e-6);
  std::map<std::string, std::set<std::uint32_t>> modules;
  for (const Route& route : o->file.plan.routes)
    for (const Stage& s : route.stages)
      for (const std::uint32_t p : s.pool) modules[o->file.plan.partitions[p].partition_class].insert(route.module);
  for (const auto& [name, held] : modules) EXPECT_EQ(held.size(), 1U) << name;
}

TEST(Constraints, AtMostSoManyPartitionsAreUsed) {
  const PlanRequest r = request("[[partitions]]\nat_most = 3", true);
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible);
  EXPECT_LE(o->file.plan.partitions.size(), 3U);
}

TEST(Constraints, TheSearchKeepsMemoryAndSaysWhatItCannot) {
  const PlanRequest memory = request("[[memory]]\nclass = \"gpu\"\nat_most_bytes = 11000000", false);
  const auto o = build_plan(memory);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->feasible);
  for (const Route& route : o->file.plan.routes)
    for (const Stage& s : route.stages)
      EXPECT_LE(s.end_block - s.first_block, o->file.plan.partitions[s.pool[0]].partition_class == "gpu" ? 1U : 2U);
  const PlanRequest rows = request("[[partitions]]\nat_most = 3", false);
  const auto refused = build_plan(rows);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), HasSubstr("c.toml:1: partitions"));
  EXPECT_THAT(refused.error(), HasSubstr("--solver glpk"));
}

TEST(Constraints, WhatNothingKeepsIsAResult) {
  const PlanRequest r = request("[[partitions]]\nat_most = 1", true);
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  EXPECT_FALSE(o->feasible);
  EXPECT_THAT(o->solution.certificate.binding, HasSubstr("no plan keeps the constraints"));
}

TEST(Constraints, ANameThatNothingHasIsRefused) {
  const PlanRequest r = request("[[partitions]]\nmodel = \"ocx\"\nat_most = 1", true);
  const auto o = build_plan(r);
  ASSERT_FALSE(o.ok());
  EXPECT_THAT(o.error(), HasSubstr("there is no model 'ocx'; use one of: detector, ocr"));
}

}  // namespace
}  // namespace leat::planner
