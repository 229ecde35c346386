// `leat feed` as a program among others: what it is not told, a reader who goes, signals that come twice.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/serving/daemon_fixture.h"
#include "tools/base/subprocess/process.h"

namespace leat::test {
namespace {

using subprocess::Process;

std::string application(const std::string& name) {
  return "[[application]]\nname = \"" + name +
         "\"\nslo_ms = 5000\n  [[application.module]]\n  name = \"sum\"\n  latency_ms = [1]\n";
}
std::string config() { return "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n" + application("echo"); }

// The feeder, its answers and what it says.
class Feeder {
 public:
  Feeder(const Leatd& leatd, const std::vector<std::string>& more) {
    const std::string film = folder_.write("film.gray8", std::string(20 * 64 * 32, 'p'));
    errors_ = folder_.path() + "/errors";
    std::vector<std::string> words = {LEAT_BINARY, "feed",   "--socket", leatd.socket(), "--raw",     "gray8", "--size",
                                      "64x32",     "--loop", "--quiet",  film,           "--answers", "-"};
    words.insert(words.end(), more.begin(), more.end());
    auto pipe = subprocess::make_pipe();
    const Fd errors(::creat(errors_.c_str(), 0600));
    auto process = Process::start({.words = words,
                                   .environment = {{"XDG_RUNTIME_DIR", folder_.path()}},
                                   .fds = {{pipe->write.get(), STDOUT_FILENO}, {errors.get(), STDERR_FILENO}},
                                   .group = subprocess::Group::own});
    EXPECT_TRUE(process.ok());
    if (process.ok()) process_ = std::move(*process);
    answers_ = std::move(pipe->read);
  }
  // Until the first answer has come and the state of its streams is written.
  [[nodiscard]] bool runs() const {
    pollfd first{answers_.get(), POLLIN, 0};
    return ::poll(&first, 1, std::chrono::milliseconds(kPatience).count()) == 1 &&
           eventually([&] { return !states().empty(); });
  }
  void reader_goes() { answers_.reset(); }
  // He takes what comes until the end.
  subprocess::Ending end() {
    char some[4096];
    while (answers_ && ::read(answers_.get(), some, sizeof some) > 0) {
    }
    return process_.wait(subprocess::after(kPatience));
  }
  Process& process() { return process_; }
  [[nodiscard]] std::string said() const {
    std::ifstream file(errors_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The files of it that `leat status` reads.
  [[nodiscard]] std::vector<std::string> states() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/leat-feed", none))
      out.push_back(entry.path().filename());
    return out;
  }

 private:
  ScratchFolder folder_;
  std::string errors_;
  Fd answers_;
  Process process_;
};

TEST(FeedCommand, CamerasMustSayWhichOfSeveralApplicationsTheyAreFor) {
  const Leatd leatd(config() + application("other"));
  const ScratchFolder folder;
  const std::string film = folder.write("film.gray8", std::string(20 * 64 * 32, 'p'));
  const std::string camera = "[[camera]]\nname = \"gate\"\nurl = \"" + film + "\"\n";
  const auto feed = [&](const std::string& file) {
    return run_to_end({LEAT_BINARY, "feed", "--socket", leatd.socket(), "--raw", "gray8", "--size", "64x32", "--frames",
                       "3", "--quiet", "--cameras", file});
  };
  const Exit none = feed(folder.write("none.toml", camera));
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("leatd serves several applications (echo, other); say which with --application"),
            std::string::npos)
      << none.err;
  const Exit named = feed(folder.write("named.toml", camera + "application = \"other\"\n"));
  EXPECT_EQ(named.status, 0) << named.err;
}

TEST(FeedCommand, EndsWhenTheReaderOfItsAnswersHasGone) {
  const Leatd leatd(config());
  for (const std::vector<std::string>& pace : {std::vector<std::string>{}, {"--realtime"}}) {
    Feeder feeder(leatd, pace);
    ASSERT_TRUE(feeder.runs()) << feeder.said();
    feeder.reader_goes();
    const subprocess::Ending ending = feeder.end();
    EXPECT_TRUE(ending.clean()) << feeder.said();
    EXPECT_NE(feeder.said().find("completed"), std::string::npos) << "the table: " << feeder.said();
    EXPECT_EQ(feeder.said().find("reader"), std::string::npos) << feeder.said();
    EXPECT_TRUE(feeder.states().empty());
  }
}

// As `timeout` does it: to the program, and to its group.
TEST(FeedCommand, ASignalThatComesTwiceAtOnceIsOne) {
  const Leatd leatd(config());
  for (const int number : {SIGTERM, SIGINT}) {
    Feeder feeder(leatd, {"--realtime"});
    ASSERT_TRUE(feeder.runs()) << feeder.said();
    feeder.process().signal(number);
    ASSERT_EQ(::kill(-feeder.process().pid(), number), 0);
    const subprocess::Ending ending = feeder.end();
    EXPECT_TRUE(ending.clean()) << feeder.said();
    EXPECT_NE(feeder.said().find("completed"), std::string::npos) << "the table: " << feeder.said();
    EXPECT_TRUE(feeder.states().empty());
  }
}

// A leatd that stands still is waited for longer than that.
TEST(FeedCommand, ASecondSignalLaterEndsItAtOnceAndLeavesNoStateBehind) {
  const Leatd leatd(config());
  Feeder feeder(leatd, {"--realtime"});
  ASSERT_TRUE(feeder.runs()) << feeder.said();
  ASSERT_EQ(::kill(leatd.pid(), SIGSTOP), 0);
  EXPECT_TRUE(eventually([&] {
    feeder.process().signal(SIGTERM);
    return feeder.process().has_ended();
  }));
  ASSERT_EQ(::kill(leatd.pid(), SIGCONT), 0);
  const subprocess::Ending ending = feeder.end();
  EXPECT_EQ(ending.how, subprocess::Ending::How::signalled) << feeder.said();
  EXPECT_EQ(ending.code, SIGTERM);
  EXPECT_TRUE(feeder.states().empty());
}

}  // namespace
}  // namespace leat::test
