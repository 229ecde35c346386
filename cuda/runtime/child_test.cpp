// Channel and Child with real processes, killed at inconvenient moments.
#include "cuda/runtime/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "tools/base/subprocess/descendants.h"

namespace leat::gpu {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr auto kSoon = seconds(20);

// Becomes readable when the process ends. Invalid: there is no such process (any more).
Fd watch(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool ended(const Fd& watched) {
  if (!watched) return true;
  pollfd waiting{.fd = watched.get(), .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 20'000) == 1;
}

// ---- roles of this very program ----

int echo(Channel& channel, std::span<const std::string> arguments) {
  for (;;) {
    Received received = channel.receive(after(kSoon));
    if (received.receipt != Receipt::message) return 0;
    std::vector<int> fds;
    for (const Fd& fd : received.message.fds) fds.push_back(fd.get());
    const char* value = std::getenv("LEAT_CHILD_TEST");
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
  auto child = Child::start({.role = "idle"});
  if (!child || !channel.send("grandchild", std::to_string(child->pid()))) return 1;
  return idle(channel, {});
}

const Role kRoles[] = {
    {"echo", echo},
    {"idle", idle},
    {"nested", nested},
    {"abort",
     [](Channel&, std::span<const std::string>) -> int {
       ::raise(SIGKILL);
       return 0;
     }},
    {"throw", [](Channel&, std::span<const std::string>) -> int { throw std::runtime_error("it broke"); }},
};

Child start(const std::string& role, std::vector<std::string> arguments = {}, Environment environment = {}) {
  auto child = Child::start({.role = role, .arguments = std::move(arguments), .environment = std::move(environment)});
  if (!child) throw std::runtime_error(child.error());
  return std::move(*child);
}

// ---- channel ----

TEST(Channel, CarriesKindBodyAndDescriptors) {
  Child child = start("echo", {"!"});
  Fd memory(::memfd_create("child test", MFD_CLOEXEC));
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
  ASSERT_EQ(::setenv("LEAT_CHILD_TEST", "outer", 1), 0);
  for (const auto& [value, seen] : {std::pair{"inner", "inner"}, {"", "unset"}}) {
    Child child = start("echo", {}, {{"LEAT_CHILD_TEST", value}});
    ASSERT_TRUE(child.channel().send("environment").ok());
    auto got = child.channel().expect("environment", after(kSoon));
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_EQ(got->body, seen);
  }
  ::unsetenv("LEAT_CHILD_TEST");
}

TEST(Child, KilledChildIsSeenAsClosedAndTakesItsOwnChildrenAlong) {
  ASSERT_TRUE(subprocess::adopt_orphans().ok());
  Child child = start("nested");
  auto grandchild = child.channel().expect("grandchild", after(kSoon));
  ASSERT_TRUE(grandchild.ok()) << grandchild.error();
  const Fd watched = watch(std::stoi(grandchild->body));
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.channel().receive(after(kSoon)).receipt, Receipt::closed);
  EXPECT_THAT(child.wait(after(kSoon)).text(), HasSubstr("signal 9"));
  EXPECT_TRUE(ended(watched));
  EXPECT_TRUE(subprocess::kill_descendants(after(kSoon)).ok());
}

}  // namespace
}  // namespace leat::gpu

int main(int argc, char** argv) {
  const int role = leat::gpu::run_role(argc, argv, leat::gpu::kRoles);
  if (role >= 0) return role;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
