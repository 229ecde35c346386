// Channel, Child and Keeper with real processes, killed at inconvenient moments. No GPU is needed: the MPS control
// daemon is played by fake_mps_control.sh.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "cuda/probe/child.h"
#include "cuda/probe/command.h"
#include "cuda/probe/descendants.h"
#include "cuda/probe/keeper.h"

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

int echo(Channel& channel, std::span<const std::string> arguments) {
  for (;;) {
    Received received = channel.receive(after(kSoon));
    if (received.receipt != Receipt::message) return 0;
    std::vector<int> fds;
    for (const Fd& fd : received.message.fds) fds.push_back(fd.get());
    const char* value = std::getenv("LEAT_PROBE_TEST");
    const std::string body =
        received.message.kind == "environment" ? (value == nullptr ? "unset" : value) : received.message.body;
    if (!channel.send(received.message.kind, body + (arguments.empty() ? "" : arguments[0]), fds)) return 1;
  }
}

int idle(Channel&, std::span<const std::string>) {
  for (;;) ::pause();
}

// A child that has a child of its own: "grandchild PID".
int nested(Channel& channel, std::span<const std::string>) {
  auto child = Child::start({.role = "idle", .arguments = {}, .environment = {}});
  if (!child || !channel.send("grandchild", std::to_string(child->pid()))) return 1;
  return idle(channel, {});
}

// Plays the probe: keeper, daemon, a child; then waits to be killed. "up": pids of keeper and child; directory.
int fake_probe(Channel& channel, std::span<const std::string> arguments) {
  auto keeper = Keeper::start();
  if (!keeper) throw std::runtime_error(keeper.error());
  DaemonOptions options{.program = kFake, .arguments = {}, .environment = {}};
  options.arguments.assign(arguments.begin(), arguments.end());
  if (auto up = keeper->start_daemon(options); !up) throw std::runtime_error(up.error());
  auto child = Child::start({.role = "idle", .arguments = {}, .environment = {}});
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
    {"echo", echo},
    {"idle", idle},
    {"nested", nested},
    {"fake_probe", fake_probe},
    {"abort",
     [](Channel&, std::span<const std::string>) -> int {
       ::raise(SIGKILL);
       return 0;
     }},
    {"throw", [](Channel&, std::span<const std::string>) -> int { throw std::runtime_error("it broke"); }},
    {kKeeperRole, Keeper::run},
};

Child start(const std::string& role, std::vector<std::string> arguments = {}, Environment environment = {}) {
  auto child = Child::start({.role = role, .arguments = std::move(arguments), .environment = std::move(environment)});
  if (!child) throw std::runtime_error(child.error());
  return std::move(*child);
}

// ---- channel ----

TEST(Channel, CarriesKindBodyAndDescriptors) {
  Child child = start("echo", {"!"});
  Fd memory(::memfd_create("probe test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), 12345), 0);
  const int fds[] = {memory.get()};
  const std::string body(60'000, 'x');
  ASSERT_TRUE(child.channel().send("big", body, fds).ok());
  Received got = child.channel().receive(after(kSoon));
  ASSERT_EQ(got.receipt, Receipt::message) << got.text;
  EXPECT_EQ(got.message.kind, "big");
  EXPECT_EQ(got.message.body, body + "!");
  ASSERT_EQ(got.message.fds.size(), 1u);
  EXPECT_EQ(::lseek(got.message.fds[0].get(), 0, SEEK_END), 12345);
  EXPECT_EQ(::fcntl(got.message.fds[0].get(), F_GETFD), FD_CLOEXEC);
}

TEST(Channel, TooLargeIsRefusedBeforeSending) {
  auto ends = Channel::pair();
  ASSERT_TRUE(ends.ok());
  EXPECT_THAT(ends->first.send("k", std::string(kMaxMessageBytes, 'x')).error(), HasSubstr("too large"));
  ASSERT_TRUE(ends->first.send("k", std::string(kMaxMessageBytes - 100, 'x')).ok());
  EXPECT_EQ(ends->second.receive(after(kSoon)).message.body.size(), kMaxMessageBytes - 100);
}

TEST(Channel, TimeClosingAndNonsenseAreToldApart) {
  auto ends = Channel::pair();
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->second.receive(after(std::chrono::milliseconds(1))).receipt, Receipt::timed_out);
  const std::uint32_t huge = 1u << 30;
  ASSERT_EQ(::send(ends->first.fd(), &huge, sizeof huge, 0), static_cast<ssize_t>(sizeof huge));
  EXPECT_EQ(ends->second.receive(after(kSoon)).receipt, Receipt::broken);
  ends->first.close();
  EXPECT_EQ(ends->second.receive(after(kSoon)).receipt, Receipt::closed);
  EXPECT_FALSE(ends->second.send("k").ok());
}

TEST(Channel, ExpectPassesTheOtherSidesOwnWordsOn) {
  auto ends = Channel::pair();
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(ends->first.send("failed", "no room on the device").ok());
  EXPECT_EQ(ends->second.expect("ready", after(kSoon)).error(), "no room on the device");
  ASSERT_TRUE(ends->first.send("other").ok());
  EXPECT_THAT(ends->second.expect("ready", after(kSoon)).error(), HasSubstr("expected 'ready', got 'other'"));
}

// ---- child ----

TEST(Child, EndingsAreToldApart) {
  EXPECT_THAT(start("abort").wait(after(kSoon)).text(), HasSubstr("signal 9"));
  EXPECT_THAT(start("idle").wait(after(std::chrono::milliseconds(20))).text(), HasSubstr("time limit"));
  EXPECT_EQ(start("unknown").wait(after(kSoon)).text(), "ended with status 2");
  Child echoing = start("echo");
  echoing.channel().close();
  EXPECT_TRUE(echoing.wait(after(kSoon)).clean());
}

TEST(Child, ExceptionOfARoleArrivesAsFailed) {
  Child child = start("throw");
  EXPECT_EQ(child.channel().expect("ready", after(kSoon)).error(), "it broke");
  EXPECT_EQ(child.wait(after(kSoon)).text(), "ended with status 1");
}

TEST(Child, EnvironmentIsSetAndRemoved) {
  ASSERT_EQ(::setenv("LEAT_PROBE_TEST", "outer", 1), 0);
  for (const auto& [value, seen] : {std::pair{"inner", "inner"}, {"", "unset"}}) {
    Child child = start("echo", {}, {{"LEAT_PROBE_TEST", value}});
    ASSERT_TRUE(child.channel().send("environment").ok());
    auto got = child.channel().expect("environment", after(kSoon));
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_EQ(got->body, seen);
  }
  ::unsetenv("LEAT_PROBE_TEST");
}

TEST(Child, KilledChildIsSeenAsClosedAndTakesItsOwnChildrenAlong) {
  ASSERT_TRUE(adopt_orphans().ok());
  Child child = start("nested");
  auto grandchild = child.channel().expect("grandchild", after(kSoon));
  ASSERT_TRUE(grandchild.ok()) << grandchild.error();
  const Fd watched = watch(std::stoi(grandchild->body));
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.channel().receive(after(kSoon)).receipt, Receipt::closed);
  EXPECT_THAT(child.wait(after(kSoon)).text(), HasSubstr("signal 9"));
  EXPECT_TRUE(ended(watched));
  EXPECT_TRUE(kill_descendants({}, after(kSoon)).ok());
}

TEST(Command, OutputStatusAndLimit) {
  auto output = run_command({"cat"}, {}, "hello\n", after(kSoon));
  ASSERT_TRUE(output.ok()) << output.error();
  EXPECT_EQ(*output, "hello\n");
  EXPECT_THAT(run_command({"sh", "-c", "echo first; echo why >&2; exit 3"}, {}, "", after(kSoon)).error(),
              HasSubstr("ended with status 3: why"));
  EXPECT_THAT(run_command({"sleep", "1000"}, {}, "", after(std::chrono::milliseconds(50))).error(),
              HasSubstr("killed"));
  EXPECT_THAT(run_command({"leat-no-such-program"}, {}, "", after(kSoon)).error(), HasSubstr("cannot be started"));
  EXPECT_EQ(*run_command({"sh", "-c", "echo $LEAT_X"}, {{"LEAT_X", "7"}}, "", after(kSoon)), "7\n");
}

// ---- keeper ----

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
  void SetUp() override { ASSERT_TRUE(adopt_orphans().ok()); }  // so that orphans are reaped here, not by pid 1
  void TearDown() override { EXPECT_TRUE(kill_descendants({}, after(kSoon)).ok()); }
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
  EXPECT_THAT(keeper->start_daemon({.program = kFake, .arguments = {"-broken"}, .environment = {}}).error(),
              HasSubstr("ended with status 4: no device to control"));
  EXPECT_THAT(keeper->start_daemon({.program = "/no/such/program", .arguments = {}, .environment = {}}).error(),
              HasSubstr("ended with status 127"));
  // The same keeper can still start one, stop it, and start another.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(keeper->start_daemon({.program = kFake, .arguments = {}, .environment = {}}).ok());
    EXPECT_FALSE(keeper->start_daemon({.program = kFake, .arguments = {}, .environment = {}}).ok());
    EXPECT_TRUE(run_command({kFake}, keeper->environment(), "get_server_list\n", after(kSoon)).ok());
    ASSERT_TRUE(keeper->stop_daemon().ok());
  }
  const std::string directory = keeper->directory();
  EXPECT_TRUE(keeper->tidy().ok());
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace leat::probe

int main(int argc, char** argv) {
  const int role = leat::probe::run_role(argc, argv, leat::probe::kRoles);
  if (role >= 0) return role;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
