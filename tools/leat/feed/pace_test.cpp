#include "tools/leat/feed/pace.h"

#include <gtest/gtest.h>

#include <vector>

#include "tools/leat/feed/source/decoder_place.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(AnswerTime, LeastAndUsualOfLateAndNothingAfterSilence) {
  AnswerTime times;
  EXPECT_EQ(times.min_ns(0), 0);
  std::int64_t now = 0;
  for (int i = 0; i < 200; ++i) times.add(now += 10 * kMs, (i == 100 ? 20 : 50) * kMs);
  EXPECT_EQ(times.min_ns(now), 20 * kMs);
  EXPECT_NEAR(static_cast<double>(times.usual_ns(now)), 50.0 * kMs, kMs);
  for (int i = 0; i < 300; ++i) times.add(now += 10 * kMs, 50 * kMs);
  EXPECT_EQ(times.min_ns(now), 50 * kMs) << "two seconds later the quick one counts no more";
  EXPECT_EQ(times.min_ns(now + 3000 * kMs), 0) << "after a stall everything is tried again";
  times.add(now + 3000 * kMs, 30 * kMs);
  EXPECT_EQ(times.usual_ns(now + 3000 * kMs), 30 * kMs);
}

TEST(Liveness, ThinsOutFirstThenJumps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Liveness liveness(seed);
    constexpr std::int64_t kRoom = 100 * kMs;
    const std::int64_t borne = liveness.borne_permille() * kRoom / 1000;
    EXPECT_EQ(liveness.decide(-30 * kMs, kRoom), CatchUp::nothing);
    EXPECT_EQ(liveness.decide(12 * kMs, kRoom), CatchUp::nothing);
    EXPECT_EQ(liveness.decide(13 * kMs, kRoom), CatchUp::thin);
    EXPECT_EQ(liveness.decide(7 * kMs, kRoom), CatchUp::thin) << "until it has caught up";
    EXPECT_EQ(liveness.decide(6 * kMs, kRoom), CatchUp::nothing);
    EXPECT_EQ(liveness.decide(borne, kRoom), CatchUp::thin);
    for (int trial = 0; trial < 3; ++trial) EXPECT_EQ(liveness.decide(borne + kMs + trial, kRoom), CatchUp::thin);
    EXPECT_EQ(liveness.decide(borne + kMs, kRoom), CatchUp::jump) << "it does not catch up";
  }
}

TEST(Liveness, AStallThatDecodingMakesGoodCostsNoJump) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Liveness liveness(seed);
    for (std::int64_t lag = 200 * kMs; lag > 0; lag -= 27 * kMs)  // pictures 33 ms apart, 6 ms each to decode
      EXPECT_NE(liveness.decide(lag, 100 * kMs), CatchUp::jump) << seed;
    for (int slow = 0; slow < 3; ++slow) EXPECT_NE(liveness.decide(200 * kMs, 100 * kMs), CatchUp::jump);
    EXPECT_EQ(liveness.decide(199 * kMs, 100 * kMs), CatchUp::jump) << "too slowly";
  }
}

TEST(Liveness, WhereAJumpWouldEndAFilmOnlyOneThatDoesNotCatchUpJumps) {
  Liveness liveness;
  for (std::int64_t lag = 3000 * kMs; lag > 0; lag -= 27 * kMs)
    EXPECT_NE(liveness.decide(lag, 100 * kMs, true), CatchUp::jump) << lag;
  for (int trial = 0; trial < 3; ++trial)
    EXPECT_NE(liveness.decide((3000 + trial) * kMs, 100 * kMs, true), CatchUp::jump);
  EXPECT_EQ(liveness.decide(3010 * kMs, 100 * kMs, true), CatchUp::jump);
}

// Streams that lag alike do not give up alike: at any lag some go on.
TEST(Liveness, StreamsBearDifferentLags) {
  std::vector<int> tenths(10, 0);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Liveness liveness(seed);
    for (int jump = 0; jump < 20; ++jump) {
      ++tenths[static_cast<std::size_t>(liveness.borne_permille() / 100)];
      EXPECT_EQ(liveness.decide(1000 * kMs, 100 * kMs), CatchUp::jump);
    }
  }
  for (int t = 5; t < 9; ++t) EXPECT_GT(tenths[static_cast<std::size_t>(t)], 150) << t;
}

TEST(DecoderPlace, ApartWhereACoreIsLeftElseGivingWay) {
  const std::vector<std::uint32_t> usable{0, 1, 2, 3};
  const auto taken = partition_cores(R"({"partitions": [{"cores": "0-1"}, {"cores": "3"}, {"cores": ""}]})");
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(*taken, (std::vector<std::uint32_t>{0, 1, 3}));
  EXPECT_EQ(place_decoders(DecoderPlace::automatic, usable, taken).cores, std::vector<std::uint32_t>{2});
  EXPECT_FALSE(place_decoders(DecoderPlace::automatic, usable, taken).yields);
  const std::vector<std::uint32_t> all{0, 1, 3};
  EXPECT_TRUE(place_decoders(DecoderPlace::automatic, all, taken).yields);
  EXPECT_TRUE(place_decoders(DecoderPlace::apart, all, taken).cores.empty());
  EXPECT_TRUE(place_decoders(DecoderPlace::yield, usable, taken).yields);
  EXPECT_FALSE(place_decoders(DecoderPlace::anywhere, usable, taken).yields);
  EXPECT_TRUE(place_decoders(DecoderPlace::automatic, usable, std::nullopt).yields) << "leatd did not say";
  EXPECT_FALSE(place_decoders(DecoderPlace::automatic, usable, std::vector<std::uint32_t>{}).yields);
  for (const char* bad : {"", "[]", "{}", R"({"partitions": 3})", R"({"partitions": [{"cores": "x"}]})"})
    EXPECT_FALSE(partition_cores(bad).has_value()) << bad;
}

}  // namespace
}  // namespace leat::tools
