// Streams that ask when they are unsure: what their certainty is worth, and what they may.
#include <gtest/gtest.h>

#include <memory>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

constexpr TimeNs kMs = 1'000'000, kFramePeriod = 16'666'667, kOneSecond = 1'000'000'000;

double told(bool truth, bool constant_loss) {
  CertaintyFigures f;
  for (int i = 0; i < 200; ++i) {
    const double hard = 1 + i % 3, x = constant_loss ? 12 / hard : 8, lost = 0.004 * hard * x;
    f.add(truth ? 2 * lost : 0.008 * x, x, lost, 200);
  }
  return f.worth();
}

TEST(Asking, WorthIsWhatIsLeftUnexplainedLessThanByTheClock) {
  EXPECT_NEAR(told(true, false), 1, 1e-9);
  EXPECT_NEAR(told(true, true), 1, 1e-9);  // where streams ask, and all that is expected is alike
  EXPECT_NEAR(told(false, false), 0, 1e-9);
  CertaintyFigures worse;  // asked by a certainty that goes its own ways: losses are as the clock has them
  for (int i = 0; i < 200; ++i) worse.add(0.03, 4 + i % 9, 0.004 * (4 + i % 9) + 0.002 * (i % 2), 200);
  EXPECT_LT(worse.worth(), -0.5);
}

TEST(Asking, TheFactorBeginsAtOneAndIsLearnt) {
  CertaintyFigures f;
  EXPECT_EQ(f.factor(0.03), 1);
  for (int i = 0; i < 200; ++i) f.add(0.04, 8, 0.02, 200);
  EXPECT_NEAR(f.factor(0.03), 0.5, 0.05);
}

// One stream on a partition of its own, whose client reports what it is told to; answers take 20 ms.
class OneStream {
 public:
  OneStream() {
    BatchTimes times(1);
    for (int b = 1; b <= 8; ++b) times[0].push_back((6 + 2 * b) * kMs);
    CoordinatorSettings s;
    s.streams = 8;
    coordinator = std::make_unique<Coordinator>(std::vector<BatchTimes>{times}, s);
    id = coordinator->open(0, {.sla_drop = 0.06, .pace = {.period_ns = kFramePeriod}});
    coordinator->frame_clock(id, 0, kFramePeriod);
  }
  // For `seconds`; an answer every `apart` frames, whose stretch was 1 to 3 times as hard. certain: whether it says so.
  void run(double seconds, bool certain, double right = 1) {
    const TimeNs end = now + static_cast<TimeNs>(seconds * kOneSecond);
    for (; now < end; now += 8 * kFramePeriod) {
      while (coordinator->next_tick() <= now) coordinator->tick(coordinator->next_tick());
      const double hard = 1 + ++answers % 3, lost = 0.01 * hard;
      const double expected = certain ? right * lost + (1 - right) * 0.02 : -1;
      coordinator->observe(now, id, 8, 0.05 + lost, false, expected);
      coordinator->observe(now, id, 1, 0.05, false, certain ? 0.001 : -1);
      coordinator->answered(now, id, now - 20 * kMs);
    }
  }
  std::unique_ptr<Coordinator> coordinator;
  std::uint32_t id = 0;
  TimeNs now = 0;
  int answers = 0;
};

TEST(Asking, WhoSaysNothingOrNothingTrueGoesByTheClock) {
  OneStream silent, worthless, sure;
  silent.run(10, false);
  worthless.run(10, true, 0);
  sure.run(10, true);
  EXPECT_EQ(silent.coordinator->view(silent.id).asks.latest_ns, 0);
  EXPECT_EQ(worthless.coordinator->view(worthless.id).asks.latest_ns, 0);
  EXPECT_LT(worthless.coordinator->view(worthless.id).worth, 0.02);
  const StreamView view = sure.coordinator->view(sure.id);
  EXPECT_GT(view.worth, 0.3);
  EXPECT_GT(view.asks.above, 0);
  EXPECT_LT(view.asks.above, 0.12);
  EXPECT_GT(view.asks.latest_ns, view.asks.refill_ns);
  EXPECT_GT(view.asks.refill_ns, 0);
  EXPECT_FALSE(silent.coordinator->asked(silent.now, silent.id));
  EXPECT_FALSE(sure.coordinator->asked(sure.now, 7));  // nobody
}

TEST(Asking, ABucketBoundsWhatIsAskedFor) {
  OneStream s;
  s.run(10, true);
  const Asks asks = s.coordinator->view(s.id).asks;
  ASSERT_GT(asks.latest_ns, 0);
  int granted = 0;
  const TimeNs begin = s.now, end = begin + 100 * asks.refill_ns;
  for (TimeNs at = begin; at < end; at += kMs) granted += s.coordinator->asked(at, s.id) ? 1 : 0;  // it never stops
  EXPECT_GE(granted, 60);
  EXPECT_LE(granted, 102);
}

TEST(Asking, ItIsChargedWhatItSends) {
  OneStream by_clock, asking;
  by_clock.run(12, false);
  asking.run(12, true);
  // Both have sent every eighth frame, whatever their settings would be.
  const Setting clock = by_clock.coordinator->view(by_clock.id).setting;
  const Setting asks = asking.coordinator->view(asking.id).setting;
  const double sent = asks.load * 8, planned = clock.load * clock.interval;
  EXPECT_NEAR(sent / planned, 0.9, 0.2);  // no grace is left between its batches
}

// By answers at a stride of x, whose stretch was 1 to 3 times as hard. certain: whether the client said so.
Asking told_of(bool certain, double times, double x = 9) {
  Asking a;
  SharedAsking shared;
  for (int i = 0; i < 300; ++i) {
    const double hard = 1 + i % 3, lost = 0.002 * hard * x;
    a.observed(shared, certain ? lost / times : 0.02, x, lost, 0.06, {});
  }
  return a;  // the last was the hardest
}

TEST(Asking, WhatIsExpectedMovesSlopesAndTellsWhereALocalAlgorithmIsBetter) {
  for (const double times : {1.0, 0.5}) {  // what is expected is right, or twice what is lost
    const Asking a = told_of(true, times);
    EXPECT_NEAR(a.slope(0.004), 0.3 * 0.004 + 0.7 * 0.006, 0.0002);
    EXPECT_NEAR(a.local_above(0.1), 0.1 / times, 0.01);
    EXPECT_EQ(a.local_above(1), 0);  // it has none
  }
  EXPECT_NEAR(told_of(true, 1, 4.5).slope(0.004), 0.65 * 0.004 + 0.35 * 0.006, 0.0002);  // soon after an answer less
}

TEST(Asking, WhatIsWorthNothingOrNotSaidMovesNothing) {
  for (const Asking& a : {Asking(), told_of(false, 1)}) {
    EXPECT_EQ(a.slope(0.004), 0.004);
    EXPECT_EQ(a.local_above(0.1), 0);
  }
}

}  // namespace
}  // namespace leat::core::streams
