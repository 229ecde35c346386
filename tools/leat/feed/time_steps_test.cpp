// Videos by ffmpeg whose times step, through the whole feeder: every frame is sent, and counted once.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "shm/test/loopback_daemon.h"
#include "tools/base/text/fd.h"
#include "tools/leat/feed/cameras/camera.h"

namespace leat::tools::time_steps_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kPacketBytes = 188;  // of a transport stream

// A transport stream's bytes, frame by frame: a packet of the video that begins a frame begins a part.
std::vector<std::string> frames_of(const std::string& stream) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at + kPacketBytes <= stream.size(); at += kPacketBytes) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(stream[at + i]); };
    const bool video = (byte(1) & 0x1fU) == 1 && byte(2) == 0, begins = (byte(1) & 0x40U) != 0;  // ffmpeg's first
    if (out.empty() || (video && begins)) out.emplace_back();
    out.back() += stream.substr(at, kPacketBytes);
  }
  return out;
}

// A camera on loopback that sends a transport stream over TCP once, a frame each period, and hangs up.
class StreamCamera {
 public:
  StreamCamera(std::vector<std::string> frames, std::chrono::milliseconds period)
      : frames_(std::move(frames)), period_(period), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    url_ = "tcp://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~StreamCamera() {
    end_ = true;
    thread_.join();
  }
  const std::string& url() const { return url_; }
  bool sent() const { return sent_; }

 private:
  void run() {
    while (!end_ && !sent_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      auto due = std::chrono::steady_clock::now();
      for (const std::string& frame : frames_) {
        std::this_thread::sleep_until(due += period_);
        if (end_ || ::send(peer.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) break;
      }
      sent_ = true;
    }
  }
  const std::vector<std::string> frames_;
  const std::chrono::milliseconds period_;
  std::string url_;
  Fd listener_;
  std::atomic<bool> end_{false}, sent_{false};
  std::thread thread_;
};

class TimeSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/leat-steps-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    shm::test::LoopbackDaemon::Options options;
    options.socket = folder_ + "/leat.sock";
    daemon_ = std::make_unique<shm::test::LoopbackDaemon>(options);
    ASSERT_EQ(daemon_->problem(), "");
    connection_ = std::make_unique<Connection>(options.socket, "house");
  }
  void TearDown() override {
    connection_.reset();
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }
  // A transport stream of so many frames whose times begin there. With frames out of order, as x264 has them.
  std::string stream(double rate, int frames, double begin_s) {
    std::string& made = made_[{rate, frames, begin_s}];
    if (!made.empty()) return made;
    const std::string path = folder_ + "/part.ts";
    const std::string command = "ffmpeg -v error -nostdin -y -f lavfi -i testsrc2=s=64x48:r=" + std::to_string(rate) +
                                " -frames:v " + std::to_string(frames) +
                                " -threads 1 -c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p -output_ts_offset " +
                                std::to_string(10 + begin_s) + " " + path;  // ffmpeg lets no time be below 0
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(path, std::ios::binary);
    return made = {std::istreambuf_iterator<char>(file), {}};
  }
  FeederOptions options(const std::string& name, const std::string& source) {
    FeederOptions o;
    o.name = name;
    o.source = source;
    o.application = "echo";
    o.connection = connection_.get();
    o.realtime = true;
    o.depth = 32;
    o.slo_ns = 20'000'000'000;  // nothing is late, however busy the machine
    o.source_options.say = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    return o;
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  static Ledger ledger(const Feeder& feeder) { return feeder.figures().front().ledger; }

  std::string folder_;
  std::map<std::tuple<double, int, double>, std::string> made_;
  std::unique_ptr<shm::test::LoopbackDaemon> daemon_;
  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// 100 frames a second, so that a file of 200 takes two seconds where no gap is waited out.
TEST_F(TimeSteps, AFileInItsOwnTimeIsServedWholeWhateverItsTimesDo) {
  constexpr double kRate = 100;
  constexpr int kFrames = 100;
  const std::string first = stream(kRate, kFrames, 0);
  const struct {
    const char* name;
    double begin_s;  // of the second half; it should be 1
    const char* said;
  } kCases[] = {
      {"no step", 1, ""},
      {"twice", 0, "stepped back by 1.0"},
      {"back by .3 s", .7, "stepped back by 0.3"},
      {"back by .05 s", .95, "stepped back by 0.05"},
      {"ahead by .15 s", 1.15, ""},
      {"ahead by 60 s", 61, "stepped ahead by 60"},
      {"ahead by 5000 s", 5001, "stepped ahead by 5000"},
  };
  struct Run {
    std::string path;
    std::vector<std::string> lines;
    std::unique_ptr<Feeder> feeder;
    Status ran = Done{};
    std::int64_t took_ns = 0;
  };
  std::vector<Run> runs(std::size(kCases));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].path = folder_ + "/" + std::to_string(i) + ".ts";
    std::ofstream(runs[i].path, std::ios::binary) << first << stream(kRate, kFrames, kCases[i].begin_s);
  }
  std::vector<std::thread> threads;
  for (Run& run : runs) {
    FeederOptions o = options("clip", run.path);
    o.source_options.say = [&run](const std::string& line) { run.lines.push_back(line); };
    run.feeder = std::make_unique<Feeder>(std::move(o));
    const Status opened = run.feeder->open();
    ASSERT_TRUE(opened.ok()) << opened.error();
  }
  std::atomic<bool> stop{false};
  for (Run& run : runs)
    threads.emplace_back([&run, &stop] {
      const std::int64_t start_ns = ::leat_now_ns();
      run.ran = run.feeder->run(start_ns, stop);
      run.took_ns = ::leat_now_ns() - start_ns;
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& c = kCases[i];
    const Run& run = runs[i];
    ASSERT_TRUE(run.ran.ok()) << run.ran.error();
    EXPECT_EQ(ledger(*run.feeder).count(Outcome::completed), 2 * kFrames) << c.name;
    EXPECT_EQ(ledger(*run.feeder).skipped_count(), 0U) << c.name;
    EXPECT_LT(run.took_ns, 40'000'000'000) << c.name << ": no gap of a minute is waited out";
    EXPECT_EQ(run.feeder->time_steps(), *c.said != 0 ? 1U : 0U) << c.name;
    if (*c.said == 0) {
      EXPECT_THAT(run.lines, IsEmpty()) << c.name;
    } else {
      EXPECT_THAT(run.lines, ElementsAre(HasSubstr("clip: its times " + std::string(c.said)))) << c.name;
    }
  }
}

// The feeder is five seconds late: it passes over what is too old as far as the step, whose times say nothing of how
// far that is, then further.
TEST_F(TimeSteps, ALateFeederGoesOnBehindAStepAndCountsEveryFrame) {
  constexpr int kPart = 100;
  const std::string path = folder_ + "/twice.ts", half = stream(25, kPart, 0);
  std::ofstream(path, std::ios::binary) << half << half;
  FeederOptions o = options("clip", path);
  o.slo_ns = 1'500'000'000;
  Feeder feeder(o);
  ASSERT_TRUE(feeder.open().ok());
  std::atomic<bool> stop{false};
  const Status ran = feeder.run(::leat_now_ns() - 5'000'000'000, stop);
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(ledger(feeder).submitted_count() + ledger(feeder).skipped_count(), 2U * kPart);
  EXPECT_GE(ledger(feeder).skipped_count(Skip::passed_over), 75U) << "the deadline of 87 had passed";
  EXPECT_GE(ledger(feeder).submitted_count(), 40U) << "75 were still due";
}

TEST_F(TimeSteps, ACameraWhoseTimesStepIsServedOnAndEveryFrameIsCountedOnce) {
  constexpr double kRate = 25;
  constexpr int kPart = 50;
  const auto camera_of = [&](const std::vector<double>& begins_s) {
    std::string whole;
    for (const double begin_s : begins_s) whole += stream(kRate, kPart, begin_s);
    return whole;
  };
  struct Case {
    std::string name, whole;
    std::uint64_t steps;
    std::unique_ptr<StreamCamera> camera;
    std::unique_ptr<Camera> fed;
  };
  std::vector<Case> cases;
  cases.push_back({"no step", camera_of({0, 2, 4}), 0, nullptr, nullptr});
  cases.push_back({"back by .3 s", camera_of({0, 2, 3.7}), 1, nullptr, nullptr});
  cases.push_back({"back by .15 s", camera_of({0, 2, 3.85}), 1, nullptr, nullptr});
  cases.push_back({"ahead by 5000 s and back", camera_of({0, 5002, 4}), 2, nullptr, nullptr});
  for (Case& c : cases) {
    const std::vector<std::string> frames = frames_of(c.whole);
    ASSERT_EQ(frames.size(), 3U * kPart + 1) << "one for each, and what comes before the first";
    c.camera = std::make_unique<StreamCamera>(frames, 40ms);
    FeederOptions o = options(c.name, c.camera->url());
    o.stays = true;
    o.slo_ns = 250'000'000;
    o.stall_ns = 5'000'000'000;
    c.fed = std::make_unique<Camera>(std::move(o), true, [](const std::string&) {});
    c.fed->start(::leat_now_ns());
  }
  const auto until = std::chrono::steady_clock::now() + 60s;
  for (Case& c : cases) {
    while (c.fed->report(::leat_now_ns()).breaks == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(5ms);
    c.fed->stop();
    c.fed->join();
    const Ledger figures = ledger(c.fed->feeder());
    EXPECT_EQ(figures.submitted_count() + figures.skipped_count(), 3U * kPart) << c.name;
    // What came while the source was looked at is too old at once; so may others be on a busy machine.
    EXPECT_GT(figures.submitted_count(), 3U * kPart / 2) << c.name;
    EXPECT_GE(c.fed->report(::leat_now_ns()).time_steps, c.steps) << c.name;  // more where this host stands still
    std::printf("%s: %llu of %d submitted, %llu hopeless, %llu passed over, %llu unreferenced\n", c.name.c_str(),
                static_cast<unsigned long long>(figures.submitted_count()), 3 * kPart,
                static_cast<unsigned long long>(figures.skipped_count(Skip::hopeless)),
                static_cast<unsigned long long>(figures.skipped_count(Skip::passed_over)),
                static_cast<unsigned long long>(figures.skipped_count(Skip::unreferenced)));
  }
  for (const char* const said :
       {"back by .3 s: its times stepped back by 0.30 s", "back by .15 s: its times stepped back by 0.15 s",
        "and back: its times stepped ahead by 5000.00 s", "and back: its times stepped back by 5000.00 s"})
    EXPECT_THAT(lines(), Contains(HasSubstr(said)));
}

}  // namespace
}  // namespace leat::tools::time_steps_test
