#include "engine/daemon/metrics/recorder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/record/entries.h"
#include "engine/record/recorded_core.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;
using core::TimeNs;

constexpr std::uint64_t kSegment = 16 << 10;

core::Topology one_module() {
  core::Topology t;
  t.applications = {{.slo_ns = 100'000'000, .modules = {0}}};
  t.modules = {{.application = 0, .before = {}, .after = {}, .routes = {0}}};
  core::RouteSpec route{.module = 0, .batch = 1, .rate_rps = 1, .stages = {}};
  route.stages.push_back({.pool = {0}, .latency = {.p50_ns = {1'000'000}, .p99_ns = {1'000'000}}});
  t.routes = {route};
  t.partitions.resize(1);
  return t;
}

// A core that does nothing but note numbers, in order.
class Noted {
 public:
  explicit Noted(record::Ring& ring)
      : core_(one_module(), core::Policy{}, {.streams = 1, .requests = 4, .tasks = 4, .batches = 4, .actions = 16},
              {}) {
    core_.record(&ring, 0);
  }
  void note(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++told_) core_.note(static_cast<TimeNs>(told_), {.token = told_});
  }
  [[nodiscard]] std::uint64_t told() const { return told_; }

 private:
  record::RecordedCore core_;
  std::uint64_t told_ = 0;
};

// The notes of a file: empty where it cannot be read, or they do not follow one another.
std::vector<std::uint64_t> notes_in(const std::string& file) {
  std::vector<std::uint64_t> out;
  auto record = record::Record::read_file(file);
  if (!record.ok()) return out;
  record::Entry e;
  while (record->next(e)) {
    if (e.kind != record::Kind::note) continue;
    if (!out.empty() && e.note.token != out.back() + 1) return {};
    out.push_back(e.note.token);
  }
  if (!record->problem().empty()) out.clear();
  return out;
}

bool eventually(const std::function<bool()>& is) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : folder_(fs::temp_directory_path() / ("leat-recorder-" + std::to_string(::getpid()))) {
    fs::create_directory(folder_);
    auto metrics = Metrics::create();
    EXPECT_TRUE(metrics.ok());
    metrics_ = std::move(*metrics);
  }
  ~RecorderTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Recorder> create(std::uint64_t segments = 8) {
    auto recorder = Recorder::create(segments * kSegment, kSegment);
    EXPECT_TRUE(recorder.ok()) << recorder.error();
    return std::move(*recorder);
  }
  Status keep(Recorder& recorder) {
    return recorder.keep_in(path(), *metrics_, [this](const std::string& line) { said_.push_back(line); });
  }
  std::string path() const { return (folder_ / "leatd.record").string(); }

  fs::path folder_;
  std::unique_ptr<Metrics> metrics_;
  std::vector<std::string> said_;
};

TEST_F(RecorderTest, TheFileIsWrittenMeanwhileAndWholeAtTheEnd) {
  auto recorder = create();
  ASSERT_TRUE(keep(*recorder));
  {
    Noted noted(recorder->ring());
    noted.note(1000);
    EXPECT_TRUE(eventually([&] { return notes_in(path()).size() == 1000; }));
    noted.note(500);
    recorder->wake();
    EXPECT_TRUE(eventually([&] { return notes_in(path()).size() == 1500; }));
    noted.note(3);
  }
  recorder.reset();
  EXPECT_EQ(notes_in(path()).size(), 1503u);
  EXPECT_TRUE(said_.empty());
}

TEST_F(RecorderTest, TheNewestTakesThePlaceOfTheOldest) {
  auto recorder = create(4);
  ASSERT_TRUE(keep(*recorder));
  Noted noted(recorder->ring());
  while (recorder->ring().newest() < 10) {
    noted.note(200);
    recorder->wake();
    EXPECT_TRUE(eventually([&] {
      const auto notes = notes_in(path());
      return !notes.empty() && notes.back() + 1 == noted.told();
    }));
  }
  const auto notes = notes_in(path());
  EXPECT_GT(notes.front(), 0u);
  EXPECT_EQ(fs::file_size(path()), 4 * kSegment);
}

TEST_F(RecorderTest, AnEarlierRunsFileStays) {
  for (int run = 0; run < 2; ++run) {
    auto recorder = create();
    ASSERT_TRUE(keep(*recorder));
    Noted noted(recorder->ring());
    noted.note(run == 0 ? 7 : 9);
  }
  EXPECT_EQ(notes_in(path()).size(), 9u);
  EXPECT_EQ(notes_in(path() + ".1").size(), 7u);
}

TEST_F(RecorderTest, AFileThatCannotBeMadeIsSaid) {
  auto recorder = create();
  fs::create_directory(path());
  const Status status = keep(*recorder);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().find("recorder"), std::string::npos) << status.error();
}

TEST_F(RecorderTest, OthersAreGivenItForReadingAlone) {
  auto recorder = create();
  Noted noted(recorder->ring());
  noted.note(12);
  auto fd = recorder->share();
  ASSERT_TRUE(fd.ok()) << fd.error();
  EXPECT_FALSE(shm::Mapping::map(fd->get(), recorder->bytes(), shm::Access::read_write, false).ok());
  auto seen = shm::Mapping::map(fd->get(), recorder->bytes(), shm::Access::read_only, false);
  ASSERT_TRUE(seen.ok()) << seen.error();
  std::vector<std::byte> copy(seen->data(), seen->data() + seen->bytes());
  auto record = record::Record::read(std::move(copy));
  ASSERT_TRUE(record.ok()) << record.error();
}

}  // namespace
}  // namespace leat::daemon
