// leat-gpu-probe as a whole on a machine without a GPU: what it prints and returns without a driver, with a driver that
// shows no device, and with a driver behind which nothing computes (fake_cuda.c), also when its processes are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/gpu/processes.h"
#include "bench/gpu/questions/groups.h"
#include "bench/gpu/report.h"
#include "tools/base/subprocess/descendants.h"
#include "tools/base/subprocess/run.h"

namespace leat::probe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr auto kSoon = std::chrono::seconds(200);
const std::string kProgram = LEAT_PROGRAM, kFakeMps = LEAT_FAKE_MPS, kFakeCuda = LEAT_FAKE_CUDA_DIRECTORY;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Program : public ::testing::Test {
 protected:
  struct Result {
    int status;
    std::string out, err;
  };

  void SetUp() override {
    std::string pattern = "/tmp/leat-probe-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_TRUE(subprocess::adopt_orphans().ok());
    // Found before any real driver, and refused by the loader.
    std::filesystem::create_directory(directory_ + "/none");
    std::ofstream(directory_ + "/none/libcuda.so.1") << "no library\n";
  }
  void TearDown() override {
    EXPECT_TRUE(subprocess::kill_descendants(after(kSoon)).ok());
    // Nothing but the test's own files: TMPDIR of the probe is here.
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      EXPECT_THAT(entry.path().filename().string(), ::testing::Not(StartsWith("leat-probe-")));
    }
    std::filesystem::remove_all(directory_);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  Environment environment(const std::string& library_directory, Environment more = {}) const {
    more.emplace_back("LD_LIBRARY_PATH", library_directory);
    more.emplace_back("TMPDIR", directory_);
    return more;
  }

  // Runs to the end; arguments are plain words.
  Result run(const std::string& arguments, const Environment& with) const {
    const std::string line = kProgram + " " + arguments + " >" + path("out") + " 2>" + path("err") + "; echo $?";
    auto status = subprocess::output_of({.words = {"sh", "-c", line}, .environment = with}, {.limit = kSoon});
    EXPECT_TRUE(status.ok()) << status.error();
    return {status ? std::stoi(*status) : -1, contents(path("out")), contents(path("err"))};
  }
  Result without_driver(const std::string& arguments) const { return run(arguments, environment(path("none"))); }

  std::string directory_;
};

bool one_line(const std::string& text) { return text.find('\n') == text.size() - 1; }

TEST_F(Program, WithoutADriverSaysSoInOneLineAndEndsWithThree) {
  for (const char* arguments : {"", "--quick", "--only mps"}) {
    const Result result = without_driver(arguments);
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(one_line(result.err)) << result.err;
    EXPECT_THAT(result.err, StartsWith("leat-gpu-probe: no NVIDIA driver: "));
  }
}

TEST_F(Program, WithoutADriverTheJsonSaysWhy) {
  const Result file = without_driver("--json " + path("report.json"));
  EXPECT_EQ(file.status, 3);
  EXPECT_EQ(file.out, "");
  const Result standard = without_driver("--quick --json -");
  EXPECT_EQ(standard.status, 3);
  for (const std::string& text : {contents(path("report.json")), standard.out}) {
    EXPECT_THAT(schema_problems(text), IsEmpty()) << text;
    EXPECT_THAT(text, HasSubstr("\"problem\": \"no NVIDIA driver"));
  }
}

TEST_F(Program, DriverThatShowsNoDeviceIsToldApart) {
  const Result result = run("", environment(kFakeCuda, {{"LEAT_FAKE_CUDA", "none"}}));
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(one_line(result.err)) << result.err;
  EXPECT_THAT(result.err, StartsWith("leat-gpu-probe: no usable CUDA device: cuInit: "));
}

TEST_F(Program, HelpNamesEveryOptionAndGroup) {
  const Result help = without_driver("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* option : {"--json", "--quick", "--only", "--device", "--mps-control"}) {
    EXPECT_THAT(help.out, HasSubstr(option));
  }
  for (const Group& group : groups()) EXPECT_THAT(help.out, HasSubstr(std::string(group.name)));
  EXPECT_EQ(without_driver("--man").status, 0);
}

TEST_F(Program, BadInputIsOneLineAndTwo) {
  for (const char* arguments : {"--jsno x", "--only nothing", "surplus", "--role group"}) {
    const Result result = without_driver(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_TRUE(one_line(result.err)) << result.err;
  }
  EXPECT_EQ(run("--json /no/such/directory/x", environment(path("none"))).status, 2);
}

// The whole run with a driver behind which nothing works: every group ends, every answer is there, nothing is left.
TEST_F(Program, EveryGroupIsAnsweredThoughNothingWorks) {
  const Result result = run("--quick --json - --mps-control " + kFakeMps, environment(kFakeCuda));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(schema_problems(result.out), IsEmpty()) << result.out;
  for (const Group& group : groups()) {
    EXPECT_THAT(result.out, HasSubstr("\"group\": \"" + std::string(group.name) + "\""));
  }
  EXPECT_THAT(result.out,
              HasSubstr("\"id\": \"cleanup.processes\",\n   \"question\": \"Was everything the probe started "
                        "ended and removed?\",\n   \"answer\": \"yes\""));
}

// ---- killed at work ----

// The probe, started, with a client of its (fake) MPS daemon hanging in the driver.
class Killed : public Program {
 protected:
  void start() {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    Fd fifo(::open(path("fifo").c_str(), O_RDWR | O_CLOEXEC));
    const Environment with = environment(kFakeCuda, {{"LEAT_FAKE_CUDA_HANG", path("fifo")}});
    probe_ = ::fork();
    ASSERT_GE(probe_, 0);
    if (probe_ == 0) {
      for (const auto& [name, value] : with) ::setenv(name.c_str(), value.c_str(), 1);
      const int out = ::open(path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      ::dup2(out, STDOUT_FILENO);
      ::execl(kProgram.c_str(), "leat-gpu-probe", "--only", "handover", "--quick", "--json", "-", "--mps-control",
              kFakeMps.c_str(), nullptr);
      ::_exit(127);
    }
    pollfd waiting{.fd = fifo.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waiting, 1, 60'000), 1) << "no client reached the driver";
    // Children of the probe now: the keeper and the group.
    for (pid_t child : subprocess::children_of(probe_)) {
      const std::string line = contents("/proc/" + std::to_string(child) + "/cmdline");
      (line.find("keeper") != std::string::npos ? keeper_ : group_) = child;
    }
    ASSERT_GT(keeper_, 0);
    ASSERT_GT(group_, 0);
    for (pid_t parent : {probe_, keeper_, group_}) {
      for (pid_t child : subprocess::children_of(parent))
        watched_.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    }
    ASSERT_GE(watched_.size(), 5u);  // keeper, group, daemon, server (by way of the keeper), one peer or two
  }

  int wait_for_probe() const {
    int status = 0;
    EXPECT_EQ(::waitpid(probe_, &status, 0), probe_);
    return status;
  }
  void expect_all_gone() const {
    for (const Fd& one : watched_) {
      pollfd waiting{.fd = one.get(), .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&waiting, 1, 60'000), 1) << "a process is left";
    }
  }

  pid_t probe_ = 0, keeper_ = 0, group_ = 0;
  std::vector<Fd> watched_;
};

TEST_F(Killed, ProbeLeavesNothing) {
  start();
  ::kill(probe_, SIGKILL);
  wait_for_probe();
  expect_all_gone();
}

TEST_F(Killed, GroupCostsItsAnswersOnly) {
  start();
  ::kill(group_, SIGKILL);
  EXPECT_EQ(WEXITSTATUS(wait_for_probe()), 1);
  expect_all_gone();
  const std::string report = contents(path("out"));
  EXPECT_THAT(schema_problems(report), IsEmpty()) << report;
  EXPECT_THAT(report, HasSubstr("its process was killed by signal 9"));
}

TEST_F(Killed, KeeperIsReportedAndTidiedUpAfter) {
  start();
  ::kill(keeper_, SIGKILL);
  ::kill(group_, SIGKILL);
  EXPECT_EQ(WEXITSTATUS(wait_for_probe()), 1);
  expect_all_gone();
  EXPECT_THAT(contents(path("out")), HasSubstr("the keeper was killed by signal 9"));
}

}  // namespace
}  // namespace leat::probe
