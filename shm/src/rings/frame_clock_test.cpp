// When a client sends a frame: at the plan's times, and where it may, when it expects to have lost much.
#include "shm/src/rings/frame_clock.h"

#include <gtest/gtest.h>

#include <memory>

namespace leat::shm {
namespace {

constexpr std::int64_t kMs = 1'000'000, kPeriod = 10 * kMs;

class FrameClocks : public ::testing::Test {
 protected:
  FrameClocks() : page(std::make_unique<SchedulePage>()) {
    told.standing = LEAT_STANDING_ADMITTED;
    told.ask_above_ppm = 30'000;
    told.ask_earliest_us = 20'000;
    told.ask_latest_us = 200'000;
    told.ask_refill_us = 50'000;
    told.ask_bucket = 150;
  }
  void tell() { page->write(told); }
  bool wanted(std::int64_t ms, double expected) { return clock.wanted(*page, ms * kMs, expected); }
  // Has one frame sent and answered, at 1 s.
  void begin() {
    told.count = 1;
    told.frames[0] = 1005 * kMs;
    tell();
    ASSERT_TRUE(wanted(1000, -1));
    clock.answered();
  }

  Schedule told;
  std::unique_ptr<SchedulePage> page;
  FrameClock clock{kPeriod};
};

TEST_F(FrameClocks, AsksWhenMuchIsExpectedToBeLostAndAtTheLatestTime) {
  begin();
  EXPECT_FALSE(wanted(1010, 0.5));  // too soon
  EXPECT_FALSE(wanted(1030, 0.02));
  EXPECT_FALSE(wanted(1040, -1));  // it does not say
  EXPECT_TRUE(wanted(1050, 0.03));
  EXPECT_FALSE(wanted(1100, 0.5));  // no answer yet
  clock.answered();
  EXPECT_FALSE(wanted(1240, 0));
  EXPECT_TRUE(wanted(1250, 0));
}

TEST_F(FrameClocks, AsksNoMoreOftenThanItsBucketHolds) {
  begin();
  int sent = 0;
  for (std::int64_t ms = 1010; ms < 2010; ms += 10) {
    sent += wanted(ms, 1) ? 1 : 0;
    clock.answered();
  }
  EXPECT_GE(sent, 19);
  EXPECT_LE(sent, 21);
}

TEST_F(FrameClocks, ATimeSoonAfterWhatWasAskedForIsPast) {
  begin();
  EXPECT_TRUE(wanted(1050, 0.1));
  clock.answered();
  told.frames[0] = 1105 * kMs & ~std::int64_t{1};
  told.frames[1] = 1205 * kMs & ~std::int64_t{1};
  told.count = 2;
  tell();
  EXPECT_FALSE(wanted(1100, 0));
  EXPECT_TRUE(wanted(1200, 0));
  clock.answered();
  told.frames[0] = 1225 * kMs | 1;  // both frames of a probe are wanted whenever it is
  told.count = 1;
  tell();
  EXPECT_TRUE(wanted(1210, 0));
  EXPECT_TRUE(wanted(1220, 0));
}

TEST_F(FrameClocks, WhereThePageDoesNotSaySoOnlyThePlanCounts) {
  told.ask_latest_us = 0;
  begin();
  for (std::int64_t ms = 1010; ms < 1500; ms += 10) EXPECT_FALSE(wanted(ms, 1));
}

}  // namespace
}  // namespace leat::shm
