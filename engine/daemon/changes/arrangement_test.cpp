// How a wanted configuration is laid beside the one in force, and what a command adds to it.
#include "engine/daemon/changes/arrangement.h"

#include <gtest/gtest.h>

#include "engine/daemon/changes/wanted.h"

namespace leat::daemon {
namespace {

ApplicationConfig application(const std::string& name, std::size_t modules = 1) {
  ApplicationConfig out;
  out.application.name = name;
  out.application.slo_ns = 100'000'000;
  for (std::size_t m = 0; m < modules; ++m) {
    out.application.modules.push_back({.name = "m" + std::to_string(m)});
    out.modules.emplace_back();
  }
  return out;
}

Config config(std::vector<ApplicationConfig> applications) {
  Config out;
  out.file = "f.toml";
  out.applications = std::move(applications);
  return out;
}

using Words = std::vector<std::string>;

TEST(Arrangement, WhatAnswersAsBeforeKeepsItsNumber) {
  const Config running = config({application("a"), application("b")});
  const auto laid = arrange(running, Words{"A", "B"}, config({application("b"), application("c"), application("a")}),
                            Words{"B", "C", "A"});
  ASSERT_TRUE(laid.ok());
  ASSERT_EQ(laid->config.applications.size(), 3U);
  EXPECT_EQ(laid->config.applications[0].application.name, "a");
  EXPECT_EQ(laid->config.applications[1].application.name, "b");
  EXPECT_EQ(laid->config.applications[2].application.name, "c");
  EXPECT_TRUE(laid->heirs.empty());
  EXPECT_TRUE(laid->retiring.empty());
}

TEST(Arrangement, AnotherVersionIsAnotherNumberThatInheritsAndNumbersAreUsedAgain) {
  Config running = config({application("a", 2), application("b")});
  Words said = {"A1", "B"};
  for (int version = 2; version < 6; ++version) {
    const Words wanted = {"A" + std::to_string(version), "B"};
    const auto laid = arrange(running, said, config({application("a", 2), application("b")}), wanted);
    ASSERT_TRUE(laid.ok());
    ASSERT_EQ(laid->heirs.size(), 1U);
    const std::uint32_t old = version % 2 == 0 ? 0 : 2, now = 2 - old;
    EXPECT_EQ(laid->heirs[0].old, old);
    EXPECT_EQ(laid->heirs[0].now, now);
    EXPECT_EQ(laid->retiring, std::vector<std::uint32_t>{old});
    EXPECT_TRUE(laid->config.applications[old].retired);
    EXPECT_FALSE(laid->config.applications[now].retired);
    running = laid->config;
    said.assign(3, "");
    said[now] = wanted[0];
    said[1] = "B";
  }
  EXPECT_EQ(running.applications.size(), 3U);
}

TEST(Arrangement, ANumberIsUsedAgainByAsManyModulesOnly) {
  Config running = config({application("a", 2), application("b")});
  running.applications[0].retired = true;
  const auto laid = arrange(running, Words{"", "B"},
                            config({application("b"), application("c", 3), application("d", 2)}), Words{"B", "C", "D"});
  ASSERT_TRUE(laid.ok());
  EXPECT_EQ(laid->config.applications[0].application.name, "d");
  EXPECT_EQ(laid->config.applications[2].application.name, "c");
  std::vector<ApplicationConfig> many = {application("b")};
  Words words = {"B"};
  for (int i = 0; i < 8; ++i) many.push_back(application("x" + std::to_string(i), 16)), words.push_back("X");
  EXPECT_FALSE(arrange(running, Words{"", "B"}, config(many), words).ok());
}

Deployment deployment(int partitions, const std::string& model) {
  Deployment out;
  for (int p = 0; p < partitions; ++p) {
    PartitionConfig partition;
    partition.partition.name = "p" + std::to_string(p);
    out.partitions.push_back(partition);
    out.slots.push_back(static_cast<std::uint32_t>(p));
    worker::Setup setup;
    setup.partition = partition.partition.name;
    setup.modules.push_back({.application = "a", .name = "m", .model_path = model});
    out.setups.push_back(setup);
  }
  return out;
}

TEST(Arrangement, WhoRunsTheSameStaysAndOthersStartBesideInWaves) {
  const Deployment running = deployment(8, "old");
  Deployment wanted = deployment(8, "new");
  wanted.setups[3] = running.setups[3];
  const auto fresh = give_slots(running, wanted, slots_for(8));
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(wanted.slots, (std::vector<std::uint32_t>{8, 9, 10, 3, 11, 12, 13, 14}));
  EXPECT_EQ(waves_of(*fresh), (std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 4}, {5, 6}, {7}}));
  Deployment more = deployment(8, "new");
  EXPECT_FALSE(give_slots(running, more, 12).ok());
}

TEST(Arrangement, EdgesThatAreTheSameHaveTheSameNumber) {
  FeatureEdge kept{.application = 0, .module = 0, .boundary = 2, .spec = {.rows = 8, .scrap = 1, .row_bytes = 64}};
  kept.number = 1;
  Deployment wanted = deployment(1, "m");
  wanted.edges = {kept, kept};
  wanted.edges[0].boundary = 1;
  wanted.setups[0].edges = {{.edge = 0}, {.edge = 1}};
  ASSERT_TRUE(number_edges(std::span(&kept, 1), wanted).ok());
  EXPECT_EQ(wanted.edges[0].number, 0U);
  EXPECT_EQ(wanted.edges[1].number, 1U);
  EXPECT_EQ(wanted.setups[0].edges[1].edge, 1U);
}

TEST(Wanted, CommandsAddUpAndAReloadKeepsWhatWasLoaded) {
  const Config running = config({application("a"), application("b")});
  using Kind = ChangeRequest::Kind;
  auto added = with({}, {.kind = Kind::load, .name = "c", .text = "[[application]]"}, running);
  ASSERT_TRUE(added.ok());
  added = with(*added, {.kind = Kind::unload, .name = "b"}, running);
  ASSERT_TRUE(added.ok());
  added = with(*added, {.kind = Kind::replace, .name = "a", .text = "/m.onnx"}, running);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(added->models.at("a/m0"), "/m.onnx");
  added = with(*added, {.kind = Kind::reload}, running);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(added->loaded.size(), 1U);
  EXPECT_TRUE(added->unloaded.empty());
  EXPECT_TRUE(added->models.empty());
  for (const ChangeRequest& no : {ChangeRequest{.kind = Kind::load, .name = "a"},
                                  {.kind = Kind::unload, .name = "x"},
                                  {.kind = Kind::replace, .name = "a/x"},
                                  {.kind = Kind::replace, .name = "x"}})
    EXPECT_FALSE(with({}, no, running).ok());
}

TEST(Wanted, WhatNeedsARestartIsNamed) {
  const Config running = config({application("a")});
  Config wanted = running;
  EXPECT_EQ(needs_restart(running, wanted), "");
  wanted.limits.streams = 3;
  wanted.scheduler_core = 3;
  wanted.recorder_path = "x";
  EXPECT_NE(needs_restart(running, wanted).find("[daemon] scheduler_core, [limits] streams have changed"),
            std::string::npos);
}

}  // namespace
}  // namespace leat::daemon
