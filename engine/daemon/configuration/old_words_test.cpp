// Keys of the version before are read, each with a line that says the new one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/daemon/configuration/config.h"

namespace leat::daemon {
namespace {

constexpr const char* kPartitionAndApplication = R"([[partition]]
name = "p"
[[application]]
name = "echo"
slo_ms = 100
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)";

TEST(OldWords, AreReadWithALineThatSaysTheNewOne) {
  const auto config = parse_config(std::string(R"([limits]
batch_ms = 3000
hello_ms = 50
[limits.users.7]
least_slo_ms = 4
[workers]
load_ms = 60000
longest_backoff_ms = 20
[policy]
kappa_permille = 700
)") + kPartitionAndApplication,
                                   "c.toml");
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config->limits.batch_timeout_ns, 3'000'000'000);
  EXPECT_EQ(config->limits.handshake_timeout_ns, 50'000'000);
  EXPECT_EQ(config->limits.user.users.at(0).second.min_slo_ns, 4'000'000);
  EXPECT_EQ(config->workers.worker_start_timeout_ns, 60'000'000'000);
  EXPECT_EQ(config->workers.max_backoff_ns, 20'000'000);
  const auto says = [](const char* place, const char* now) {
    return testing::AllOf(testing::StartsWith(place), testing::HasSubstr(std::string("is called ") + now + " now"));
  };
  EXPECT_THAT(config->warnings,
              testing::UnorderedElementsAre(says("c.toml:2: limits.batch_ms: ", "batch_timeout_ms"),
                                            says("c.toml:3: limits.hello_ms: ", "handshake_timeout_ms"),
                                            says("c.toml:5: limits.users.7.least_slo_ms: ", "min_slo_ms"),
                                            says("c.toml:7: workers.load_ms: ", "worker_start_timeout_ms"),
                                            says("c.toml:8: workers.longest_backoff_ms: ", "max_backoff_ms"),
                                            says("c.toml:9: policy: ", "batch_latency_share_permille")));
}

TEST(OldWords, NewOnesAreReadInSilence) {
  const auto config = parse_config(
      std::string("[limits]\nbatch_timeout_ms = 3000\n[workers]\nmax_backoff_ms = 20\n") + kPartitionAndApplication,
      "c.toml");
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config->limits.batch_timeout_ns, 3'000'000'000);
  EXPECT_THAT(config->warnings, testing::IsEmpty());
}

}  // namespace
}  // namespace leat::daemon
