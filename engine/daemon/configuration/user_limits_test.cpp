// What the tables of the configuration give to whom.
#include "engine/daemon/configuration/user_limits.h"

#include <gtest/gtest.h>

#include "engine/daemon/configuration/config.h"
#include "leat/leat.h"

namespace leat::daemon {
namespace {

constexpr const char* kRest = R"(
[[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 100
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)";

constexpr std::uint32_t kUser = 4'000'000'001, kGroup = 4'000'000'011, kOtherGroup = 4'000'000'012;

LimitsConfig limits(const std::string& toml) {
  const auto config = parse_config(toml + kRest, "c.toml");
  EXPECT_TRUE(config.ok()) << config.error();
  return config.ok() ? config->limits : LimitsConfig{};
}

TEST(UserLimits, WithoutATableOneUserMayHaveHalfAndTheTrustedEverything) {
  const LimitsConfig all = limits("[limits]\nstreams = 10\nrequests = 100\nmemory_mib = 64\n");
  const UserLimits user = limits_of(all, {1, kUser, kGroup, {}}, false);
  EXPECT_EQ(user.streams, 5u);
  EXPECT_EQ(user.requests, 50u);
  EXPECT_EQ(user.memory_bytes, 32u << 20);
  EXPECT_EQ(user.priority, static_cast<std::uint32_t>(LEAT_PRIORITY_NORMAL));
  EXPECT_EQ(user.overload_set & 1u << LEAT_OVERLOAD_never_drop, 0u);
  EXPECT_EQ(user.min_slo_of(100), 25);
  const UserLimits root = limits_of(all, {1, 0, 0, {}}, true);
  EXPECT_EQ(root.streams, 10u);
  EXPECT_GE(root.requests, 100u);
  EXPECT_EQ(root.memory_bytes, 64u << 20);
  EXPECT_EQ(root.priority, static_cast<std::uint32_t>(LEAT_PRIORITY_PROTECTED));
  EXPECT_NE(root.overload_set & 1u << LEAT_OVERLOAD_never_drop, 0u);
  EXPECT_EQ(root.min_slo_of(100), 0);
}

TEST(UserLimits, HisTableGoesBeforeHisGroupsAndTheseBeforeEverybodys) {
  const LimitsConfig all = limits(R"([limits.user]
sessions = 2
streams = 3
descriptors = 10
min_slo_ms = 50
[limits.groups.4000000011]
streams = 7
priority = "high"
min_slo_ms = 20
overload = ["fifo"]
[limits.groups.4000000012]
streams = 5
requests = 9
min_slo_ms = 10
overload = ["latest"]
[limits.users.4000000001]
streams = 1
memory_mib = 3
)");
  const auto nobody = limits_of(all, {1, 99, 99, {}}, false);
  EXPECT_EQ(nobody.sessions, 2u);
  EXPECT_EQ(nobody.streams, 3u);
  EXPECT_EQ(nobody.min_slo_of(1), 50'000'000);

  const auto member = limits_of(all, {1, 99, kOtherGroup, {}}, false);
  EXPECT_EQ(member.streams, 5u);
  EXPECT_EQ(member.requests, 9u);
  EXPECT_EQ(member.sessions, 2u) << "what the group's table does not name is everybody's";

  const auto of_both = limits_of(all, {1, 99, kOtherGroup, {3, kGroup, 4}}, false);
  EXPECT_EQ(of_both.streams, 7u) << "the more generous of his groups, key by key";
  EXPECT_EQ(of_both.requests, 9u);
  EXPECT_EQ(of_both.priority, static_cast<std::uint32_t>(LEAT_PRIORITY_HIGH)) << "a supplementary group counts";
  EXPECT_EQ(of_both.min_slo_of(1), 10'000'000);
  EXPECT_EQ(of_both.overload_set, 1u << LEAT_OVERLOAD_fifo | 1u << LEAT_OVERLOAD_latest);

  const auto himself = limits_of(all, {1, kUser, kGroup, {}}, false);
  EXPECT_EQ(himself.streams, 1u) << "his own table before his groups', also where it gives less";
  EXPECT_EQ(himself.memory_bytes, 3u << 20);
  EXPECT_EQ(himself.priority, static_cast<std::uint32_t>(LEAT_PRIORITY_HIGH));

  const auto trusted = limits_of(all, {1, kUser, kGroup, {}}, true);
  EXPECT_EQ(trusted.streams, 1u) << "of the trusted only a table of their own counts";
  EXPECT_EQ(trusted.priority, static_cast<std::uint32_t>(LEAT_PRIORITY_PROTECTED));
  EXPECT_GT(trusted.sessions, 2u);
}

TEST(UserLimits, ATableMayNameAUserOfThisHost) {
  const LimitsConfig all = limits("[limits.users.root]\nstreams = 4\n[limits.groups.root]\nstreams = 2\n");
  ASSERT_EQ(all.user.users.size(), 1u);
  EXPECT_EQ(all.user.users[0].first, 0u);
  ASSERT_EQ(all.user.groups.size(), 1u);
  EXPECT_EQ(all.user.groups[0].first, 0u);
}

TEST(UserLimits, ASmallMemoryCgroupCapsWhatAllMayHold) {
  LimitsConfig all = limits("[limits]\nmemory_mib = 512\n");
  EXPECT_EQ(cap_memory(all, {}), "");  // nobody knows of a limit
  EXPECT_EQ(cap_memory(all, {512u << 20, "/sys/fs/cgroup/memory.max"}), "");
  EXPECT_EQ(all.memory_capped_by, "");
  const std::string line = cap_memory(all, {(300u << 20) + 5, "/sys/fs/cgroup/memory.max"});
  EXPECT_NE(line.find("300 MiB, not memory_mib = 512: /sys/fs/cgroup/memory.max"), std::string::npos) << line;
  EXPECT_EQ(all.memory_bytes, 300u << 20);
  EXPECT_EQ(limits_of(all, {1, kUser, kGroup, {}}, false).memory_bytes, 150u << 20);
  EXPECT_NE(all.memory_capped_by, "");
}

}  // namespace
}  // namespace leat::daemon
