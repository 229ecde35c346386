// Keeper with real processes, killed at inconvenient moments. No GPU is needed: the MPS control daemon is played by
// cuda/fake/mps_control.sh.
#include "bench/gpu/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tools/base/subprocess/descendants.h"
#include "tools/base/subprocess/run.h"
#include "tools/base/text/fd.h"

namespace leat::probe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr auto kSoon = seconds(20);
const std::string kFake = LEAT_FAKE_MPS;

// Becomes readable when the process ends. Invalid: there is no such process (any more).
Fd watch(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool ended(const Fd& watched) {
  if (!watched) return true;
  pollfd waiting{.fd = watched.get(), .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 20'000) == 1;
}

std::vector<pid_t> numbers(const std::string& text) {
  std::istringstream words(text);
  std::vector<pid_t> result;
  for (pid_t pid = 0; words >> pid;) result.push_back(pid);
  return result;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// ---- roles of this very program ----

int idle(Channel&, std::span<const std::string>) {
  for (;;) ::pause();
}

// Plays the probe: keeper, daemon, a child; then waits to be killed. "up": pids of keeper and child; directory.
int fake_probe(Channel& channel, std::span<const std::string> arguments) {
  auto keeper = Keeper::start();
  if (!keeper) throw std::runtime_error(keeper.error());
  DaemonOptions options{.program = kFake};
  options.arguments.assign(arguments.begin(), arguments.end());
  if (auto up = keeper->start_daemon(options); !up) throw std::runtime_error(up.error());
  auto child = Child::start({.role = "idle"});
  if (!child) throw std::runtime_error(child.error());
  const std::string pids = std::to_string(keeper->pid()) + " " + std::to_string(child->pid());
  if (!channel.send("up", pids) || !channel.send("directory", keeper->directory())) return 1;
  auto next = channel.expect("tidy", after(kSoon));  // or SIGKILL
  if (!next) return 1;
  child->kill();
  const Status tidied = keeper->tidy();
  return channel.send("tidied", tidied ? "" : tidied.error()) ? 0 : 1;
}

const Role kRoles[] = {
    {"idle", idle},
    {"fake_probe", fake_probe},
    {kKeeperRole, Keeper::run},
};

Child start(const std::string& role, std::vector<std::string> arguments = {}) {
  auto child = Child::start({.role = role, .arguments = std::move(arguments)});
  if (!child) throw std::runtime_error(child.error());
  return std::move(*child);
}

// The probe with its keeper, daemon, daemon's server and one child, all watched.
struct Family {
  Child probe;
  std::string directory;
  pid_t keeper = 0;
  std::vector<Fd> watched;  // keeper, child, daemon, server

  explicit Family(std::vector<std::string> arguments = {}) : probe(start("fake_probe", std::move(arguments))) {
    auto up = probe.channel().expect("up", after(kSoon));
    if (!up) throw std::runtime_error(up.error());
    auto where = probe.channel().expect("directory", after(kSoon));
    if (!where) throw std::runtime_error(where.error());
    directory = where->body;
    keeper = numbers(up->body).at(0);
    for (pid_t pid : numbers(up->body + " " + contents(directory + "/log/pids"))) watched.push_back(watch(pid));
  }
  bool all_watched() const {
    return watched.size() == 4 && std::all_of(watched.begin(), watched.end(), [](const Fd& w) { return bool(w); });
  }
  void expect_all_gone() {
    for (std::size_t i = 0; i < watched.size(); ++i) EXPECT_TRUE(ended(watched[i])) << "process " << i << " is left";
    EXPECT_FALSE(std::filesystem::exists(directory)) << directory;
  }
};

class KeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(subprocess::adopt_orphans().ok());
  }  // so that orphans are reaped here, not by pid 1
  void TearDown() override { EXPECT_TRUE(subprocess::kill_descendants(after(kSoon)).ok()); }
};

TEST_F(KeeperTest, OrderlyEndLeavesNothing) {
  Family family;
  ASSERT_TRUE(family.all_watched());
  ASSERT_TRUE(family.probe.channel().send("tidy").ok());
  auto tidied = family.probe.channel().expect("tidied", after(kSoon));
  ASSERT_TRUE(tidied.ok()) << tidied.error();
  EXPECT_EQ(tidied->body, "");
  family.expect_all_gone();
}

TEST_F(KeeperTest, ProbeKilledLeavesNothing) {
  Family family;
  ASSERT_TRUE(family.all_watched());
  ::kill(family.probe.pid(), SIGKILL);
  family.expect_all_gone();
}

TEST_F(KeeperTest, ProbeKilledWithADaemonThatWillNotQuitLeavesNothing) {
  Family family({"-stubborn"});
  ASSERT_TRUE(family.all_watched());
  ::kill(family.probe.pid(), SIGKILL);
  family.expect_all_gone();
}

TEST_F(KeeperTest, KeeperKilledThenTheProbeTidies) {
  Family family({"-stubborn"});  // so that the death signal alone does not end it
  ASSERT_TRUE(family.all_watched());
  ::kill(family.keeper, SIGKILL);
  ASSERT_TRUE(ended(family.watched[0]));
  ASSERT_TRUE(family.probe.channel().send("tidy").ok());
  auto tidied = family.probe.channel().expect("tidied", after(kSoon));
  ASSERT_TRUE(tidied.ok()) << tidied.error();
  EXPECT_THAT(tidied->body, HasSubstr("the keeper was killed by signal 9"));
  family.expect_all_gone();
}

TEST_F(KeeperTest, KeeperIgnoresTheSignalsOfATerminal) {
  Family family;
  ASSERT_TRUE(family.all_watched());
  for (int signal : {SIGINT, SIGHUP, SIGTERM}) ::kill(family.keeper, signal);
  ::kill(family.probe.pid(), SIGTERM);
  family.expect_all_gone();
}

TEST_F(KeeperTest, DaemonKilledIsNotWaitedFor) {
  Family family;
  ASSERT_TRUE(family.all_watched());
  ::kill(numbers(contents(family.directory + "/log/pids")).at(0), SIGKILL);
  ASSERT_TRUE(family.probe.channel().send("tidy").ok());
  ASSERT_TRUE(family.probe.channel().expect("tidied", after(kSoon)).ok());
  family.expect_all_gone();
}

TEST_F(KeeperTest, DaemonThatDoesNotStartIsReportedInItsOwnWords) {
  auto keeper = Keeper::start();
  ASSERT_TRUE(keeper.ok()) << keeper.error();
  EXPECT_THAT(keeper->start_daemon({.program = kFake, .arguments = {"-broken"}}).error(),
              HasSubstr("ended with status 4: no device to control"));
  EXPECT_THAT(keeper->start_daemon({.program = "/no/such/program"}).error(),
              HasSubstr("/no/such/program: cannot be started: No such file"));
  // The same keeper can still start one, stop it, and start another.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(keeper->start_daemon({.program = kFake}).ok());
    EXPECT_FALSE(keeper->start_daemon({.program = kFake}).ok());
    const auto asked = subprocess::output_of({.words = {kFake}, .environment = keeper->environment()},
                                             {.limit = kSoon, .input = "get_server_list\n"});
    EXPECT_TRUE(asked.ok()) << asked.error();
    ASSERT_TRUE(keeper->stop_daemon().ok());
  }
  const std::string directory = keeper->directory();
  EXPECT_TRUE(keeper->tidy().ok());
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace leat::probe

int main(int argc, char** argv) {
  const int role = leat::gpu::run_role(argc, argv, leat::probe::kRoles);
  if (role >= 0) return role;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
