// What stated rates take of the sets of partitions that serve them.
#include "engine/daemon/deployment/capacity/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// overlap: in permille, of each of two modules.
Deployment deployed(const std::string& text, std::uint32_t overlap = 0) {
  const auto config = parse_config(text, "test.toml");
  EXPECT_TRUE(config.ok()) << config.error();
  const std::uint32_t cores[] = {0, 1};
  auto d = deploy(*config, cores);
  EXPECT_TRUE(d.ok()) << d.error();
  std::vector<worker::Ready> ready(d->partitions.size());
  for (worker::Ready& r : ready) r.overlap_permille.assign(2, overlap);
  EXPECT_TRUE(complete_plan(*config, *d, ready).ok());
  return std::move(*d);
}

std::string partitions(int count, const std::string& name = "p") {
  return "[[partition]]\nname = \"" + name + "\"\nkind = \"emulated\"\ncount = " + std::to_string(count) + "\n";
}

std::string application(const std::string& name, double rate, const std::string& first, const std::string& second,
                        int slo_ms = 100) {
  return "[[application]]\nname = \"" + name + "\"\nslo_ms = " + std::to_string(slo_ms) +
         (rate > 0 ? "\nrate_rps = " + std::to_string(rate) : std::string()) +
         "\n[[application.module]]\nname = \"first\"\nlatency_ms = " + first +
         "\n[[application.module]]\nname = \"second\"\nafter = [\"first\"]\nlatency_ms = " + second + "\n";
}

TEST(Capacity, ModulesThatShareASetTakeEachOthersTime) {
  // 10 ms and 30 ms on all of two partitions: 50 a second, each module alone could do 67 or more.
  const Deployment d = deployed(partitions(2) + application("a", 40, "[10]", "[30]"));
  const Capacity c = capacity(d);
  EXPECT_NEAR(c.load, .8, 1e-6);
  EXPECT_THAT(c.partitions, ElementsAre(0, 1));
  EXPECT_NEAR(c.part[0], .8, 1e-6);
  EXPECT_TRUE(unschedulable(d).empty());

  const auto lines = unschedulable(
      deployed(partitions(2) + application("a", 40, "[10]", "[30]") + application("b", 30, "[10]", "[10]")));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("at least 110 % of the time of partitions p0, p1 ('a' 80 %, 'b' 30 %)"));
}

TEST(Capacity, BatchesCountAsFarAsTheSloPermits) {
  // Two of the first at once cost 12 ms, three 14 ms; but the second takes 30 ms alone.
  EXPECT_NEAR(capacity(deployed(partitions(1) + application("a", 20, "[10, 12, 14]", "[30]", 100))).load,
              20 * (.014 / 3 + .030), 1e-6);
  EXPECT_NEAR(capacity(deployed(partitions(1) + application("a", 20, "[10, 12, 14]", "[30]", 43))).load,
              20 * (.012 / 2 + .030), 1e-6);
}

// A batch keeps its partition for less than its latency, which is what its SLO has to do with all the same.
TEST(Capacity, WhereBatchesOverlapTheirLatencyCountsLess) {
  const std::string one = partitions(1) + application("a", 40, "[10]", "[30]");
  EXPECT_NEAR(capacity(deployed(one)).load, 1.6, 1e-6);
  EXPECT_NEAR(capacity(deployed(one, 400)).load, .96, 1e-6);
  EXPECT_EQ(unschedulable(deployed(one)).size(), 1u);
  EXPECT_TRUE(unschedulable(deployed(one, 400)).empty());
  const std::string late = partitions(1) + application("a", 1, "[10]", "[30]", 39);
  ASSERT_EQ(unschedulable(deployed(late, 400)).size(), 1u);
  const std::string streams =
      partitions(1) + application("a", 0, "[10]", "[30]") + "[[application.stream]]\nperiod_ms = 35\n";
  EXPECT_FALSE(unschedulable(deployed(streams)).empty());
  EXPECT_THAT(unschedulable(deployed(streams, 400)), testing::IsEmpty());
}

// Of two classes both are counted.
TEST(Capacity, AModuleWithSeveralRoutesIsSpread) {
  const std::string text = partitions(1, "p") + partitions(3, "q") + application("a", 100, "[10]", "[10]");
  const Capacity c = capacity(deployed(text));
  EXPECT_NEAR(c.load, 100 * .020 / 4, 1e-6);
  EXPECT_EQ(c.partitions.size(), 4u);
}

TEST(Capacity, WithoutARateThereIsNothingToSay) {
  EXPECT_EQ(capacity(deployed(partitions(2) + application("a", 0, "[10]", "[30]"))).load, 0);
}

TEST(Capacity, StreamsThatAreExpectedStandForARateAndBackgroundTakesWhatIsLeft) {
  const std::string streams = "[[application.stream]]\nperiod_ms = 100\ncount = 3\n";
  EXPECT_NEAR(capacity(deployed(partitions(2) + application("a", 0, "[10]", "[30]") + streams)).load, .6, 1e-6);
  EXPECT_EQ(
      capacity(deployed(partitions(2) + application("a", 0, "[10]", "[30]") + streams + "priority = \"background\"\n"))
          .load,
      0);
}

}  // namespace
}  // namespace leat::daemon
