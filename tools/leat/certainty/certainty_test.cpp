// The rule made of one's own videos: the replay that it is judged by, what it is judged to be worth, and the files that
// detections are read from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "leat/block_tracker.hpp"
#include "tools/leat/certainty/asking_replay.h"
#include "tools/leat/certainty/footage.h"
#include "tools/leat/certainty/judgement.h"

namespace leat::tools {
namespace {

using scene::DropTable;

// A video that loses ten times as much from every other `calm` frames on, and a tracker that knows it or does not.
DropTable calm_and_wild(bool known) {
  constexpr std::uint32_t calm = 50;
  DropTable t{.video = "calm-and-wild", .fps = 25, .frames = 500, .every = 1};
  for (std::uint32_t f = 0; f < t.frames; ++f) {
    double lost = 0;
    for (std::uint32_t s = 0; s < DropTable::kStrides; ++s) {
      if (s > 0) lost += (f + s) / calm % 2 == 0 ? 0.001 : 0.01;
      t.drop.push_back(static_cast<float>(lost));
      t.expects.push_back(static_cast<float>(known ? lost : 0.005 * s));
    }
  }
  return t;
}

double squares(const Replayed& r) {
  double sum = 0;
  for (const double s : r.seconds(25)) sum += s * s;
  return sum;
}

TEST(AskingReplay, ByTheClockEveryInterval) {
  const DropTable t = calm_and_wild(true);
  const Replayed r = replay(t, 0, 481, {.interval = 8, .answer = 2});
  EXPECT_EQ(r.sent, 60u);
  ASSERT_EQ(r.lost.size(), 480u);
  // Up to an interval and the answer's way after the frame that was answered, never longer.
  for (std::size_t i = 100; i < r.lost.size(); ++i) EXPECT_LE(r.lost[i], 0.1001) << i;
  EXPECT_NEAR(r.lost[6], 7 * 0.001, 1e-6);  // frame 7: of the answer of frame 0
  EXPECT_NEAR(r.lost[9], 2 * 0.001, 1e-6);  // frame 10: that of frame 8 has come
}

TEST(AskingReplay, WhoKnowsLosesLessWithAsManyAndWhoDoesNotKnowLosesNoLess) {
  for (const std::uint32_t interval : {8u, 12u, 16u}) {
    const Replay clock{.interval = interval, .answer = 2};
    const DropTable known = calm_and_wild(true), unknown = calm_and_wild(false);
    const Replayed by_clock = replay(known, 0, 500, clock);
    const Replayed asking = replay_asking(known, 0, 500, clock, by_clock.sent);
    EXPECT_LE(asking.sent, by_clock.sent);
    EXPECT_LT(squares(asking), 0.9 * squares(by_clock)) << interval;
    const Replayed blind = replay_asking(unknown, 0, 500, clock, by_clock.sent);
    EXPECT_LE(blind.sent, by_clock.sent);
    EXPECT_GT(squares(blind), 0.9 * squares(by_clock)) << interval;
  }
}

TEST(RuleJudgement, OfAVideoWithPhasesARuleIsWorthAskingBy) {
  const scene::Footage footage = [] {
    scene::Footage f = scene::generated_footage(*scene::motion_kind("phases"), 4, 1200);
    f.truth = f.detected;  // nobody says what is there
    return f;
  }();
  std::vector<DropTable> recordings = {scene::record_drops(footage, 6, scene::AnyTracker::blocks())};
  const RuleJudgement j = judge(recordings, kBlockRule, 2);
  EXPECT_GT(j.flicker, 0.01);
  EXPECT_LT(j.flicker, 0.08);
  EXPECT_GT(j.made.late, j.made.late_by_age);
  EXPECT_GT(j.made.at[2], 0.25);
  EXPECT_GT(j.made.gain, 0);
  EXPECT_GT(j.given.gain, 0);
  EXPECT_EQ(j.rule.asks, j.made.asks());
}

// What is detected has nothing to do with what is seen: no tracker can tell what is lost.
TEST(RuleJudgement, WhereNothingCanBeToldItIsByTheClock) {
  scene::Footage f = scene::generated_footage(*scene::motion_kind("easy"), 4, 700);
  std::uint32_t state = 1;
  for (auto& boxes : f.detected) {
    for (TrackedBox& b : boxes) {
      state = state * 1'664'525 + 1'013'904'223;
      const float by = static_cast<float>(state >> 24) / 16;
      b.x0 += by, b.x1 += by;
    }
  }
  f.truth = f.detected;
  std::vector<DropTable> recordings = {scene::record_drops(f, 6, scene::AnyTracker::blocks())};
  const RuleJudgement j = judge(recordings, kBlockRule, 2);
  EXPECT_FALSE(j.made.asks());
  EXPECT_FALSE(j.rule.asks);
  EXPECT_EQ(j.rule.expected(CertaintyTerms{1}), -1);
}

struct Files : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/leat-certainty-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  std::string folder;
};

constexpr const char* kLine =
    R"({"v":1,"stream":"gate","picture":0,"detections":[{"class":"cat","score":0.9,"box":[20,10,60,40]}]})";

// Four pictures of 640 x 20 pixels, every one of another grey.
std::string four_pictures() {
  std::string out = "YUV4MPEG2 W640 H20 F30:1 Cmono\n";
  for (int i = 0; i < 4; ++i) out += "FRAME\n" + std::string(std::size_t{640} * 20, static_cast<char>(40 * i));
  return out;
}

TEST_F(Files, PicturesAndWhatWasDetectedOnThem) {
  std::string lines;
  for (int i = 3; i >= 0; --i)  // in any order
    lines += R"({"stream":"gate","picture":)" + std::to_string(i) + R"(,"detections":[{"box":[)" +
             std::to_string(20 + i) + ",2,60,18]}]}\n";
  const auto detect = detections_of(file("a.ndjson", lines));
  ASSERT_TRUE(detect.ok()) << detect.error();
  const auto footage = read_footage(file("v.y4m", four_pictures()), {}, 3, *detect);
  ASSERT_TRUE(footage.ok()) << footage.error();
  ASSERT_EQ(footage->detected.size(), 3u);  // no more were wanted
  EXPECT_EQ(footage->width, 320u);
  EXPECT_EQ(footage->height, 10u);
  EXPECT_EQ(footage->frame(2).pixels[0], 80);
  EXPECT_EQ(footage->detected[2].at(0).x0, 11);  // half as large
  EXPECT_EQ(footage->detected[2].at(0).y1, 9);
}

TEST_F(Files, WhatIsWrongIsSaid) {
  const std::string video = file("v.y4m", four_pictures());
  const auto problem = [&](const std::string& text) {
    const auto detect = detections_of(file("a.ndjson", text));
    if (!detect.ok()) return detect.error();
    const auto footage = read_footage(video, {}, 100, *detect);
    return footage.ok() ? "" : footage.error();
  };
  const std::string line = std::string(kLine) + "\n";
  EXPECT_NE(problem(line).find("picture 1 has no answer"), std::string::npos);
  EXPECT_NE(problem(line + "{\"v\":1,\"lost\":3}\n").find(":2: lines are missing"), std::string::npos);
  EXPECT_NE(problem(line + "{]\n").find(":2: not a line of"), std::string::npos);
  EXPECT_NE(problem(R"({"stream":"a","picture":0,"detections":[{"box":[1,2,3]}]})").find(":1: not a line of"),
            std::string::npos);
  EXPECT_NE(problem(line + R"({"stream":"yard","picture":1})" + "\n").find("a second stream, 'yard'"),
            std::string::npos);
  EXPECT_NE(problem(R"({"stream":"a","picture":99999999999})").find("no picture 99999999999"), std::string::npos);
  EXPECT_NE(detections_of(folder + "/none").error().find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace leat::tools
