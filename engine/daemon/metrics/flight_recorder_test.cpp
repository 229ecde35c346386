#include "engine/daemon/metrics/flight_recorder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "shm/src/segments/segment.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : folder_(fs::temp_directory_path() / ("leat-recorder-" + std::to_string(::getpid()))) {
    fs::create_directory(folder_);
    auto metrics = Metrics::create();
    EXPECT_TRUE(metrics.ok());
    metrics_ = std::move(*metrics);
  }
  ~RecorderTest() override { fs::remove_all(folder_); }

  std::unique_ptr<FlightRecorder> start(std::uint64_t max_file_bytes = FlightRecorder::kMaxFileBytes) {
    return FlightRecorder::start(
        *metrics_, path(), [this](const std::string& line) { said_.set_value(line); }, max_file_bytes);
  }
  std::string path() const { return (folder_ / "flight.bin").string(); }
  void happen(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) metrics_->event(shm::EventKind::submitted, 1, 0, told_++);
  }
  static std::vector<shm::Event> in(const std::string& file) {
    std::ifstream stream(file);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    std::vector<shm::Event> events(bytes.size() / sizeof(shm::Event));
    std::memcpy(events.data(), bytes.data(), events.size() * sizeof(shm::Event));
    return events;
  }
  // Until the running recorder has written all that happened.
  bool written() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (auto events = in(path()); events.empty() || events.back().token + 1 != told_; events = in(path())) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  fs::path folder_;
  std::unique_ptr<Metrics> metrics_;
  std::promise<std::string> said_;
  std::uint64_t told_ = 0;
};

TEST_F(RecorderTest, WritesWhileEventsComeAndTheRestAtTheEnd) {
  auto recorder = start();
  happen(100);
  EXPECT_TRUE(written()) << "nothing is written before the end";
  happen(50);
  recorder.reset();
  const auto events = in(path());
  ASSERT_EQ(events.size(), 150U);
  for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].token, i);
}

TEST_F(RecorderTest, KeepsTheFileOfTheRunBefore) {
  start().reset();
  happen(3);
  start().reset();
  EXPECT_EQ(in(path()).size(), 3U);
  EXPECT_TRUE(fs::exists(path() + ".1"));
  EXPECT_TRUE(in(path() + ".1").empty());
}

TEST_F(RecorderTest, HasAtMostTwoFilesOfTheirSize) {
  auto recorder = start(10 * sizeof(shm::Event));
  for (std::size_t round = 0; round < 3; ++round) {
    happen(6);
    recorder->wake();
    ASSERT_TRUE(written()) << round;
  }
  recorder.reset();
  EXPECT_EQ(in(path()).size(), 6U);
  EXPECT_EQ(in(path() + ".1").size(), 6U);
  EXPECT_EQ(in(path()).front().token, 12U);
}

TEST_F(RecorderTest, CountsWhatWasOverwrittenAndSaysSo) {
  happen(shm::kEvents + 500);  // before anybody reads
  auto recorder = start();
  EXPECT_NE(said_.get_future().get().find("loses events"), std::string::npos);
  recorder.reset();
  EXPECT_EQ(in(path()).size(), shm::kEvents);
  auto share = metrics_->writer().share();
  ASSERT_TRUE(share.ok());
  auto reader = shm::CountersReader::map(std::move(*share), metrics_->writer().bytes());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->snapshot(shm::RecordKind::daemon, 0)->value(shm::DaemonCounter::events_lost), 500U);
}

TEST_F(RecorderTest, NothingButAFileIsReplaced) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(start(), nullptr);
  EXPECT_NE(said_.get_future().get().find("`recorder`"), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(path()));
}

}  // namespace
}  // namespace leat::daemon
