// One model's streams: how many are admitted, what they cost, and who disturbs whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/streams/test_world.h"

namespace leat::core::streams {
namespace {

using testing::DoubleNear;

TEST(Coordinator, SendsFarFewerFramesThanThereAreAndKeepsTheSla) {
  World w(1, {});
  for (int i = 0; i < 10; ++i) w.add(0.004, {.sla_drop = 0.06});
  w.run(11'000'000'000);
  EXPECT_EQ(w.c.admitted_streams(), 10u);
  EXPECT_LT(w.detections, 10u * 600 / 4);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const StreamView v = w.c.view(i);
    EXPECT_THAT(v.slope, DoubleNear(0.004, 0.0004));
    EXPECT_LE(v.planned_drop, 0.06);
    EXPECT_GT(v.measured_drop, 0.01);
    EXPECT_LE(v.measured_drop, 0.06);
    EXPECT_EQ(v.evictions, 0u);
  }
}

TEST(Coordinator, AloneOnAQuickPartitionIsAdmittedAtAnyPhaseOfItsCamera) {
  for (TimeNs phase = 0; phase < 16'000'000; phase += 1'000'000) {
    World w(1, {}, profile(0.4, 1.9, 4));
    w.c.frame_clock(w.add(0.004, {.sla_drop = 0.06}), w.now - phase, 16'666'667);
    w.run(1'500'000'000);
    EXPECT_EQ(w.c.admitted_streams(), 1u) << phase;
  }
}

TEST(Coordinator, GoesByWhatBatchesTakeNow) {
  std::uint32_t held[3] = {};
  std::size_t n = 0;
  for (const double slower : {0.25, 1.0, 2.0}) {
    World w(1, {});
    w.slower = slower;
    for (int i = 0; i < 160; ++i) w.add(0.012, {.sla_drop = 0.03});
    w.run(12'000'000'000);
    held[n++] = w.c.admitted_streams();
  }
  EXPECT_GT(held[0], held[1] * 3 / 2);
  EXPECT_LT(held[2], held[1] * 3 / 4);
  EXPECT_GT(held[2], 1u);
}

TEST(Coordinator, AdmitsAsManyAsItHoldsByWeightAndLeavesThemAlone) {
  World w(2, {});
  for (int i = 0; i < 150; ++i) w.add(0.006, {.sla_drop = 0.03, .weight = i >= 140 ? 5.0 : 1.0});
  w.run(16'000'000'000);
  const std::uint32_t held = w.c.admitted_streams();
  EXPECT_GT(held, 20u);
  EXPECT_LT(held, 140u);
  std::uint32_t evictions = 0;
  for (std::uint32_t i = 0; i < 150; ++i) evictions += w.c.view(i).evictions;
  for (std::uint32_t i = 140; i < 150; ++i) EXPECT_TRUE(w.c.admitted(i)) << i;
  EXPECT_LE(evictions, 25u);  // content that does not change: no coming and going
  w.run(26'000'000'000);
  EXPECT_GE(w.c.admitted_streams() + 3, held);  // it may find out that it holds more, not fewer
}

TEST(Coordinator, AStreamThatBecomesHardCostsTheFewestOthersTheirPlace) {
  World w(1, {});
  for (int i = 0; i < 40; ++i) w.add(0.004, {.sla_drop = 0.03});
  w.run(9'000'000'000);
  const std::uint32_t before = w.c.admitted_streams();
  std::uint32_t hard = 0;
  while (!w.c.admitted(hard)) ++hard;
  w.slopes[hard] = 0.03;
  w.run(14'000'000'000);
  EXPECT_GE(w.c.admitted_streams() + 4, before);
  EXPECT_GT(w.c.view(hard).slope, 0.006);
}

TEST(Coordinator, ALiarSpendsItsOwnShareAndDisturbsNobody) {
  World w(1, {});
  for (int i = 0; i < 8; ++i) w.add(0.004, {.sla_drop = 0.06, .max_share = 0.2});
  w.lying = 3;
  w.run(12'000'000'000);
  EXPECT_EQ(w.c.admitted_streams(), 8u);
  EXPECT_LE(w.c.view(3).setting.load, 0.2 + 1e-9);
  for (std::uint32_t i = 0; i < 8; ++i) {
    if (i != 3) {
      EXPECT_LE(w.c.view(i).measured_drop, 0.06);
    }
  }
}

TEST(Coordinator, HostileEventsAreIgnored) {
  World w(1, {});
  const std::uint32_t id = w.add(0.004, {});
  EXPECT_FALSE(w.c.observe(w.now, id, 0, 0.1));
  EXPECT_FALSE(w.c.observe(w.now, id, 256, 0.1));
  EXPECT_FALSE(w.c.observe(w.now, id, 4, 1.01));
  EXPECT_FALSE(w.c.observe(w.now, id, 4, -0.01));
  EXPECT_FALSE(w.c.observe(w.now, id, 4, std::nan("")));
  EXPECT_FALSE(w.c.observe(w.now, 77, 4, 0.1));
  EXPECT_FALSE(w.c.observe(w.now, kNone, 4, 0.1));
  for (const bool far : {false, true}) {
    EXPECT_FALSE(w.c.observe(w.now, id, UINT32_MAX, 0.1, far));
    EXPECT_FALSE(w.c.observe(w.now, id, 20, INFINITY, far));
    EXPECT_FALSE(w.c.observe(w.now, id, 0, 0, far));
  }
  w.c.frame_clock(id, 5, 1);  // one nanosecond
  w.c.frame_clock(id, 5, INT64_MAX);
  w.c.answered(w.now, id, w.now + 1'000'000'000);  // of the future
  w.c.answered(w.now, 99, 0);
  w.c.close(w.now, 99);
  w.run(2'000'000'000);
  EXPECT_TRUE(w.c.admitted(id));
  const StreamView v = w.c.view(id);
  EXPECT_GE(v.setting.interval, 1);
  EXPECT_LE(v.setting.interval, kLongestInterval);
  EXPECT_THAT(v.slope, DoubleNear(0.004, 0.001));
}

TEST(Coordinator, AStreamThatStopsIsPlannedNoMoreUntilItSpeaks) {
  World w(1, {});
  const std::uint32_t a = w.add(0.004, {}), b = w.add(0.004, {});
  w.run(3'000'000'000);
  w.c.close(w.now, b);
  EXPECT_EQ(w.c.view(b).standing, Standing::none);
  // Nobody answers for it any more.
  for (TimeNs t = w.now; t < 8'000'000'000; t += 200'000'000) w.c.tick(t);
  EXPECT_EQ(w.c.view(a).standing, Standing::silent);
  w.c.answered(8'100'000'000, a, 8'050'000'000);
  EXPECT_EQ(w.c.view(a).standing, Standing::waiting);
  w.c.tick(8'200'000'000);
  EXPECT_TRUE(w.c.admitted(a));
}

TEST(Coordinator, WhatStartsSoonIsNotPlannedAnew) {
  World w(1, {});
  for (int i = 0; i < 12; ++i) w.add(0.005, {.sla_drop = 0.04});
  std::size_t seen = 0;
  w.run(1'100'000'000);
  for (int tick = 0; tick < 20; ++tick) {
    const TimeNs at = w.c.next_tick();
    w.run(at - 1);
    const auto soon = [&] {
      std::vector<std::pair<TimeNs, std::uint32_t>> out;
      for (const PlannedBatch& p : w.c.batches())
        if (p.start_ns >= at && p.start_ns < at + 60'000'000) out.emplace_back(p.start_ns, p.count);
      return out;
    };
    const auto before = soon();
    seen += before.size();
    w.run(at);
    EXPECT_EQ(soon(), before);
  }
  EXPECT_GT(seen, 4u);
}

}  // namespace
}  // namespace leat::core::streams
