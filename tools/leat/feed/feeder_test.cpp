// A feeder against the smallest daemon: every picture is sent once and answered once, in every way of ending.
#include "tools/leat/feed/feeder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "shm/test/loopback_daemon.h"

namespace leat::tools {
namespace {

using ::testing::HasSubstr;
constexpr std::uint32_t kWidth = 64, kHeight = 32, kPictures = 50;

class Feeding : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/leat-feeder-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    daemon_options_.socket = folder_ + "/leat.sock";
    std::ofstream file(folder_ + "/pictures.nv12", std::ios::binary);
    for (std::uint32_t i = 0; i < kPictures; ++i) {
      const std::string picture(raw_layout(LEAT_FORMAT_nv12, kWidth, kHeight).bytes, static_cast<char>(i));
      file << picture;
    }
  }
  void TearDown() override {
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }
  void serve() {
    daemon_ = std::make_unique<shm::test::LoopbackDaemon>(daemon_options_);
    ASSERT_EQ(daemon_->problem(), "");
  }
  FeederOptions options() const {
    return {.name = "test",
            .source = folder_ + "/pictures.nv12",
            .socket = daemon_options_.socket,
            .application = "echo",
            .source_options = {.raw_format = "nv12", .width = kWidth, .height = kHeight, .rate = 500}};
  }
  static std::uint64_t sum(const Ledger& ledger) {
    std::uint64_t all = ledger.in_flight();
    for (int o = 1; o <= 5; ++o) all += ledger.count(static_cast<Outcome>(o));
    return all;
  }
  std::string folder_;
  shm::test::LoopbackDaemon::Options daemon_options_;
  std::unique_ptr<shm::test::LoopbackDaemon> daemon_;
  std::atomic<bool> stop_{false};
};

TEST_F(Feeding, EveryPictureOnceAsFastAsAnswersCome) {
  serve();
  Feeder feeder(options());
  const Status opened = feeder.open();
  ASSERT_TRUE(opened.ok()) << opened.error();
  const Status ran = feeder.run(::leat_now_ns(), stop_);
  ASSERT_TRUE(ran.ok()) << ran.error();
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(ledger.submitted_count(), kPictures);
  EXPECT_EQ(ledger.count(Outcome::completed), kPictures);
  EXPECT_EQ(ledger.in_flight(), 0U);
  EXPECT_EQ(daemon_->answered(), kPictures);
  EXPECT_EQ(daemon_->violations(), 0U);
  EXPECT_GT(ledger.latency_ms(0.5), 0);
}

// What is drawn are copies: every slot goes back, and every answer is counted as without a video.
TEST_F(Feeding, AnnotatesAStreamOrSeveralSideBySide) {
  serve();
  FeederOptions wanted = options();
  wanted.annotate = folder_ + "/one.mp4";
  auto grid = Annotator::open_grid(folder_ + "/grid.mp4", 2);
  ASSERT_TRUE(grid.ok()) << grid.error();
  FeederOptions beside = options();
  beside.grid = grid->get(), beside.grid_place = 1;
  for (const FeederOptions& each : {wanted, beside}) {
    Feeder feeder(each);
    const Status opened = feeder.open();
    ASSERT_TRUE(opened.ok()) << opened.error();
    const Status ran = feeder.run(::leat_now_ns(), stop_);
    ASSERT_TRUE(ran.ok()) << ran.error();
    EXPECT_EQ(feeder.figures().front().ledger.count(Outcome::completed), kPictures);
    EXPECT_EQ(feeder.figures().front().ledger.in_flight(), 0U);
    if (each.grid != nullptr) {
      ASSERT_TRUE((*grid)->finish().ok());
    }
  }
  EXPECT_EQ(daemon_->violations(), 0U);
  const draw::Size sheet = draw::sheet_of({kWidth, kHeight}).size;
  for (const auto& [name, size] : {std::pair{"/one.mp4", sheet}, std::pair{"/grid.mp4", draw::Size{1920, 1080}}}) {
    auto source = open_source(folder_ + name, {});
    ASSERT_TRUE(source.ok()) << source.error();
    EXPECT_EQ((*source)->format().width, size.width);
    EXPECT_EQ((*source)->format().height, size.height);
    const auto time = (*source)->next();
    EXPECT_TRUE(time.ok() && time->has_value());
  }
}

TEST_F(Feeding, EveryAnswerIsALineInTheOrderOfThePictures) {
  serve();
  const std::string path = folder_ + "/answers.ndjson";
  auto lines = LineWriter::open(path, {.notice = lost_line});
  ASSERT_TRUE(lines.ok()) << lines.error();
  FeederOptions wanted = options();
  wanted.answers = lines->get();
  wanted.tracks = true;
  Feeder feeder(wanted);
  const Status opened = feeder.open();
  ASSERT_TRUE(opened.ok()) << opened.error();
  const Status ran = feeder.run(::leat_now_ns(), stop_);
  ASSERT_TRUE(ran.ok()) << ran.error();
  (*lines)->finish(20'000'000'000);
  std::ifstream file(path);
  std::uint32_t picture = 0;
  for (std::string line; std::getline(file, line); ++picture) {
    const Json json = Json::parse(line);
    EXPECT_EQ(json["picture"], picture);
    EXPECT_EQ(json["stream"], "test");
    EXPECT_EQ(json["outcome"], "completed");
    EXPECT_NEAR(json["queue_ms"].get<double>() + json["run_ms"].get<double>(), json["latency_ms"].get<double>(), 0.02);
  }
  EXPECT_EQ(picture, kPictures);

  FeederOptions wrong = wanted;
  wrong.classes = {"dragon"};
  const Status refused = Feeder(wrong).open();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), HasSubstr("'dragon' is no class of application 'echo'"));
}

TEST_F(Feeding, LoopsInItsOwnTimeUntilTheLimit) {
  serve();
  FeederOptions wanted = options();
  wanted.realtime = wanted.loop = true;
  wanted.max_pictures = 2 * kPictures + 7;
  Feeder feeder(wanted);
  ASSERT_TRUE(feeder.open().ok());
  const std::int64_t start_ns = ::leat_now_ns();
  ASSERT_TRUE(feeder.run(start_ns, stop_).ok());
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(ledger.submitted_count(), wanted.max_pictures);
  EXPECT_EQ(sum(ledger), ledger.submitted_count());
  EXPECT_EQ(ledger.in_flight(), 0U);
  // No picture before it was due: the last one was due 106 periods of 2 ms after the start.
  EXPECT_GE(feeder.last_answer_ns() - start_ns, 106 * 2'000'000);
}

// Ten seconds late, the feeder goes on with what is due now, and nothing hopeless is sent.
TEST_F(Feeding, AFeederThatLagsKeepsToTheNewestPicture) {
  serve();
  FeederOptions wanted = options();
  wanted.realtime = wanted.loop = true;
  wanted.max_pictures = 20;
  DecodeTurns turns(1);
  wanted.turns = &turns;
  Feeder feeder(wanted);
  ASSERT_TRUE(feeder.open().ok());
  ASSERT_TRUE(feeder.run(::leat_now_ns() - 10'000'000'000, stop_).ok());
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(ledger.submitted_count(), 20U);
  EXPECT_EQ(sum(ledger), 20U);
  EXPECT_EQ(ledger.past_deadline_count(), 0U);
  EXPECT_GE(ledger.skipped_count(Skip::passed_over), 4500U) << "of 5000 that were due in ten seconds";
  EXPECT_EQ(ledger.skipped_count(Skip::unreferenced), 0U);
}

// Who asks for every picture gets every picture, late as it may be.
TEST_F(Feeding, NeverDropSkipsNothingForBeingLate) {
  serve();
  FeederOptions wanted = options();
  wanted.realtime = wanted.overload_chosen = true;
  wanted.overload = LEAT_OVERLOAD_never_drop;
  wanted.depth = kPictures;
  Feeder feeder(wanted);
  ASSERT_TRUE(feeder.open().ok());
  ASSERT_TRUE(feeder.run(::leat_now_ns() - 10'000'000'000, stop_).ok());
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(ledger.submitted_count() + ledger.skipped_count(Skip::no_slot), kPictures);
  EXPECT_EQ(ledger.skipped_count(), ledger.skipped_count(Skip::no_slot));
  EXPECT_EQ(ledger.past_deadline_count(), ledger.submitted_count());
}

TEST(DecodeTurns, ThoseServedComeFirstThenWhatWasDueFirst) {
  DecodeTurns turns(1);
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  {
    DecodeTurns::Turn first(turns, true, 0);
    const struct {
      bool served;
      std::int64_t due_ns;
    } waiting[] = {{false, 1}, {true, 30}, {true, 20}, {false, 0}};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const DecodeTurns::Turn turn(turns, waiting[i].served, waiting[i].due_ns);
        const std::lock_guard lock(mutex);
        order.push_back(i);
      });
    }
    while (turns.waiting() < 4) std::this_thread::yield();
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 3, 0}));
}

TEST_F(Feeding, AStopWaitsForWhatIsStillDue) {
  daemon_options_.answer_now = [](const shm::Taken&) { return false; };
  serve();
  FeederOptions wanted = options();
  wanted.depth = 3;
  Feeder feeder(wanted);
  ASSERT_TRUE(feeder.open().ok());
  std::thread other([&] {
    while (feeder.figures().front().ledger.submitted_count() < 3) std::this_thread::yield();
    stop_ = true;
    while (feeder.figures().front().ledger.in_flight() > 0)
      daemon_->release_held();  // a frame may not have been taken yet at the first
  });
  EXPECT_TRUE(feeder.run(::leat_now_ns(), stop_).ok());
  other.join();
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(ledger.submitted_count(), 3U) << "no more than the depth may be out";
  EXPECT_EQ(ledger.count(Outcome::completed), 3U);
}

TEST_F(Feeding, ADaemonThatEndsIsOneLineAndTheLedgerStaysExact) {
  daemon_options_.answer_now = [](const shm::Taken&) { return false; };
  serve();
  Feeder feeder(options());
  ASSERT_TRUE(feeder.open().ok());
  std::thread other([&] {
    while (feeder.figures().front().ledger.submitted_count() < 2) std::this_thread::yield();
    daemon_.reset();
  });
  const Status ran = feeder.run(::leat_now_ns(), stop_);
  other.join();
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().find('\n'), std::string::npos);
  const Ledger ledger = feeder.figures().front().ledger;
  EXPECT_EQ(sum(ledger), ledger.submitted_count());
  EXPECT_GE(ledger.in_flight(), 2U);
}

TEST_F(Feeding, WhatCannotBeOpenedSaysWhy) {
  Feeder absent(options());
  EXPECT_THAT(absent.open().error(), HasSubstr("start leatd"));
  serve();
  FeederOptions wanted = options();
  wanted.application = "nothing";
  Feeder unknown(wanted);
  EXPECT_FALSE(unknown.open().ok());
  wanted = options();
  wanted.source = "/nowhere.nv12";
  Feeder missing(wanted);
  EXPECT_THAT(missing.open().error(), HasSubstr("/nowhere.nv12"));
  Truth truth{.width = 1, .height = 1, .pictures = {{}}};
  wanted = options();
  wanted.truth = &truth;
  Feeder other(wanted);
  EXPECT_THAT(other.open().error(), HasSubstr("ground truth"));
}

}  // namespace
}  // namespace leat::tools
