// What a [[partition]] becomes, kind by kind, and what is refused.
#include <gtest/gtest.h>

#include "engine/daemon/configuration/config.h"

namespace leat::daemon {
namespace {

Result<Config> with(const std::string& partition) {
  return parse_config("[[partition]]\nname = \"p\"\n" + partition + R"(
[[application]]
name = "echo"
slo_ms = 100
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)",
                      "c.toml");
}

struct Expected {
  const char* text;
  const char* kind;
  const char* partition_class;
  const char* selector;
  const char* plugin;
};

TEST(Partitions, ARowOfTheTableSaysClassAndPlugIn) {
  for (const Expected& e : {Expected{"", "emulated", "p", "", ""},
                            {"cores = \"2-3\"", "cpu", "cpu:2", "2-3", ""},
                            {"gpu = \"GPU-1\"", "gpu", "gpu", "GPU-1", "cuda"},
                            {"gpu = \"MIG-1\"", "mig", "mig", "MIG-1", "cuda"},
                            {"gpu = \"MIG-1\"\npercent = 50", "mps", "mps:50", "MIG-1 50%", "cuda"},
                            {"kind = \"gpu\"\ngpu = \"GPU-1\"\nplugin = \"mine\"", "gpu", "gpu", "GPU-1", "mine"}}) {
    const auto config = with(e.text);
    ASSERT_TRUE(config.ok()) << config.error();
    const PartitionConfig& p = config->partitions.at(0);
    EXPECT_STREQ(name_of(p.partition.kind), e.kind) << e.text;
    EXPECT_EQ(p.partition.partition_class, e.partition_class) << e.text;
    EXPECT_EQ(p.partition.selector, e.selector) << e.text;
    EXPECT_EQ(p.gpu.plugin, e.plugin) << e.text;
  }
}

TEST(Partitions, WhatAKindDoesNotHaveIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"kind = \"npx\"", "c.toml:3: partition.kind: 'npx' is not known; use cpu, mig, "},
      {"kind = \"cpu\"\ncores = \"0\"\ngpu = \"GPU-1\"", "is for partitions of kind mig, mps"},
      {"kind = \"gpu\"\ngpu = \"GPU-1\"\npercent = 5", "is for partitions of kind mps; leave it out"},
      {"kind = \"mps\"\ngpu = \"GPU-1\"", "a partition of kind mps needs its share; write percent = 25 or so"},
      {"kind = \"gpu\"\ngpu = \"MIG-1\"", "'MIG-1' is no GPU's UUID"},
      {"kind = \"mig\"\ngpu = \"GPU-1\"", "'GPU-1' is no MIG device's UUID"},
      {"gpu = \"0\"", "'0' is no GPU's UUID"},
      {"gpu = \"GPU-1\"\ncount = 2", "only emulated partitions and shares can be multiplied"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = with(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_NE(config.error().find(message), std::string::npos) << config.error();
  }
}

}  // namespace
}  // namespace leat::daemon
