// By which way features get from one partition to another, from what was measured and what was not.
#include "engine/daemon/deployment/device_pairs.h"

#include <gtest/gtest.h>

namespace leat::daemon {
namespace {

PartitionConfig on(const std::string& uuid, const std::string& place, std::uint32_t percent = 0) {
  PartitionConfig out;
  out.gpu.uuid = uuid, out.gpu.place = place, out.gpu.percent = percent;
  return out;
}

TEST(DevicePairs, TheWayIsWhatWasMeasuredAndElseWhatIsSafe) {
  const PartitionConfig a = on("A", "A"), b = on("B", "B"), share = on("A", "A", 50), other = on("B", "B", 50),
                        first = on("M1", "G/1"), second = on("M2", "G/1"), cpu = on("", "");
  const std::vector<DevicePair> pairs = {{"A", "B", Handover::peer, 200, 90, ""},
                                         {"B", "A", Handover::host, 0, 80, "refused"},
                                         {"B", "B", Handover::host, 0, 80, "it maps, but"}};
  EXPECT_EQ(handover(a, b, pairs).way, Handover::peer);
  EXPECT_EQ(handover(b, a, pairs).way, Handover::host);
  EXPECT_EQ(handover(a, a, pairs).way, Handover::in_place) << "not asked: one place";
  EXPECT_EQ(handover(b, b, pairs).way, Handover::host) << "asked, and it lies";
  EXPECT_EQ(handover(first, second, pairs).way, Handover::in_place);
  EXPECT_EQ(handover(a, b, {}).way, Handover::host) << "not asked: two places";
  EXPECT_EQ(handover(share, share, pairs).way, Handover::in_place);
  for (const auto& [from, to] : {std::pair{share, b}, std::pair{a, other}, std::pair{share, other}}) {
    EXPECT_EQ(handover(from, to, pairs).way, Handover::host);
    EXPECT_EQ(handover(from, to, pairs).host_gbps, 90);
    EXPECT_FALSE(handover(from, to, pairs).why_not.empty());
  }
  for (const auto& [from, to] : {std::pair{cpu, a}, std::pair{a, cpu}, std::pair{cpu, cpu}})
    EXPECT_EQ(handover(from, to, pairs).way, Handover::host);
}

TEST(DevicePairs, LeatGpusAnswerIsRead) {
  const auto pairs = parse_device_pairs(
      R"({"pairs": [{"from": "A", "to": "B", "way": "peer", "gbps": 200.4, "host_gbps": 90, "why_not": ""}]})");
  ASSERT_TRUE(pairs.ok()) << pairs.error();
  EXPECT_EQ(text_of(pairs->at(0)), "peer, 200 Gbit/s, host rows 90");
  EXPECT_EQ(text_of({"A", "B", Handover::host, 0, 80, "refused"}), "host, 80 Gbit/s; refused");
  for (const char* nonsense : {"", "{}", "no driver", R"({"pairs": [{"from": "A"}]})"}) {
    const auto bad = parse_device_pairs(nonsense);
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace leat::daemon
