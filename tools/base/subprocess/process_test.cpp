#include "tools/base/subprocess/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "tools/base/text/system_reason.h"

namespace leat::subprocess {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
constexpr std::chrono::seconds kSoon{20};

struct Heard : Pipe {
  Heard() : Pipe(std::move(*make_pipe())) {}
  // All until every writer is gone; a writer that stays is a failure, not a hang.
  std::string all() {
    write.reset();
    std::string text;
    char chunk[4096];
    pollfd waiting{read.get(), POLLIN, 0};
    while (::poll(&waiting, 1, 20'000) == 1) {
      const ssize_t got = ::read(read.get(), chunk, sizeof chunk);
      if (got <= 0) return text;
      text.append(chunk, static_cast<std::size_t>(got));
    }
    ADD_FAILURE() << "somebody still holds the pipe";
    return text;
  }
};

Command shell(const std::string& script) { return {.words = {"sh", "-c", script}}; }

Process started(const Command& command) {
  auto process = Process::start(command);
  EXPECT_TRUE(process.ok()) << process.error();
  return process.ok() ? std::move(*process) : Process();
}

// What the command prints, to its end.
std::string printed(Command command) {
  Heard pipe;
  command.fds.push_back({pipe.write.get(), STDOUT_FILENO});
  Process process = started(command);
  const std::string text = pipe.all();
  EXPECT_TRUE(process.wait(after(kSoon)).clean());
  return text;
}

TEST(Process, WhatHasNoRoomNamesTheLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto process = Process::start(shell("exit 0"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(process.ok());
  EXPECT_THAT(process.error(), HasSubstr("Too many open files; raise the limit of open files (ulimit -n"));
  EXPECT_THAT(text::system_reason(EAGAIN), HasSubstr("pids limit"));  // root has no limit of processes
  EXPECT_EQ(text::system_reason(ENOENT), std::strerror(ENOENT));
}

TEST(Process, EndingsAreToldApart) {
  EXPECT_TRUE(started(shell("exit 0")).wait(after(kSoon)).clean());
  EXPECT_EQ(started(shell("exit 3")).wait(after(kSoon)).text(), "ended with status 3");
  EXPECT_THAT(started(shell("kill -9 $$")).wait(after(kSoon)).text(), HasSubstr("signal 9"));
  EXPECT_THAT(started(shell("exec sleep 1000")).wait(after(std::chrono::milliseconds(20))).text(),
              HasSubstr("time limit"));
}

TEST(Process, TheEndIsSeenBeforeItIsTold) {
  Process process = started(shell("exit 3"));
  for (const auto deadline = after(kSoon); !process.has_ended() && Clock::now() < deadline;) ::sched_yield();
  EXPECT_TRUE(process.has_ended());
  EXPECT_GT(process.pid(), 0);
  EXPECT_EQ(process.wait(Clock::now()).text(), "ended with status 3");
  EXPECT_LT(process.pid(), 0);
  EXPECT_FALSE(process.has_ended());
}

TEST(Process, WhatCannotBeStartedSaysWhy) {
  const auto missing = Process::start({.words = {"leat-no-such-program"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error(), "leat-no-such-program: cannot be started: No such file or directory");
  EXPECT_FALSE(Process::start({.words = {"/dev/null"}}).ok());
  EXPECT_FALSE(Process::start({.words = {}}).ok());
}

TEST(Process, HasTheDescriptorsItIsGivenAndNoOthers) {
  Heard leak;
  const int left_open = ::dup(leak.read.get());  // not close-on-exec
  ASSERT_GE(left_open, 3);
  const std::string look = "[ -e /proc/self/fd/" + std::to_string(left_open) + " ] && echo there || echo none";
  EXPECT_EQ(printed(shell(look)), "none\n");
  Command inherits = shell(look);
  inherits.inherits_fds = true;
  EXPECT_EQ(printed(inherits), "there\n");
  ::close(left_open);
}

TEST(Process, ReadsNothingOfItsCallers) {
  Heard ours;
  const Fd before(::dup(STDIN_FILENO));
  ASSERT_GE(::dup2(ours.read.get(), STDIN_FILENO), 0);
  EXPECT_EQ(printed(shell("readlink /proc/self/fd/0")), "/dev/null\n");
  if (before)
    ::dup2(before.get(), STDIN_FILENO);
  else
    ::close(STDIN_FILENO);
}

TEST(Process, DescriptorsMayTakeEachOthersNumbers) {
  Heard first, second;
  const int a = first.write.get(), b = second.write.get();
  Command command = shell("echo one >&" + std::to_string(b) + "; echo two >&" + std::to_string(a));
  command.fds = {{a, b}, {b, a}};
  if (a > 9 || b > 9) GTEST_SKIP() << "dash knows descriptors of one digit";
  Process process = started(command);
  EXPECT_EQ(first.all(), "one\n");
  EXPECT_EQ(second.all(), "two\n");
}

TEST(Process, EnvironmentIsSetAndRemoved) {
  ASSERT_EQ(::setenv("LEAT_PROCESS_TEST", "outer", 1), 0);
  Command command = shell("echo ${LEAT_PROCESS_TEST-unset} ${LEAT_PROCESS_TEST_2-unset}");
  EXPECT_EQ(printed(command), "outer unset\n");
  command.environment = {{"LEAT_PROCESS_TEST", "inner"}, {"LEAT_PROCESS_TEST_2", "more"}};
  EXPECT_EQ(printed(command), "inner more\n");
  command.environment = {{"LEAT_PROCESS_TEST", ""}};
  EXPECT_EQ(printed(command), "unset unset\n");
  ::unsetenv("LEAT_PROCESS_TEST");
}

TEST(Process, BeginsWithUsualSignalsAndLeavesTheCallersAlone) {
  sigset_t blocked, before, now;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const auto handler = ::signal(SIGUSR2, SIG_IGN);
  const std::string text = printed(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t 0'"));
  EXPECT_EQ(text, "SigBlk:\nSigIgn:\n");
  EXPECT_EQ(::signal(SIGUSR2, handler), SIG_IGN);
  ::pthread_sigmask(SIG_SETMASK, &before, &now);
  EXPECT_TRUE(::sigismember(&now, SIGTERM));
  EXPECT_FALSE(::sigismember(&now, SIGINT));
}

TEST(Process, AGroupOfItsOwnEndsWhole) {
  Heard held;
  Command command = shell("sleep 1000 & echo up; wait");
  command.fds = {{held.write.get(), STDOUT_FILENO}};
  command.group = Group::own;
  Process process = started(command);
  EXPECT_NE(::getpgid(process.pid()), ::getpgrp());
  char up[3] = {};
  ASSERT_EQ(::read(held.read.get(), up, sizeof up), 3);  // both are there
  process.kill();
  EXPECT_EQ(held.all(), "");  // the sleeping one held it too
}

TEST(Process, DiesWithItsParentWhereThatIsAsked) {
  Heard held, pid;
  auto parent = Process::start([&] {
    Command command = shell("exec sleep 1000");
    command.fds = {{held.write.get(), 5}};
    command.group = Group::session;
    command.death_signal = SIGKILL;
    const auto child = Process::start(command);
    if (child.ok()) (void)!::write(pid.write.get(), "up", 2);
    for (;;) ::pause();
  });
  ASSERT_TRUE(parent.ok()) << parent.error();
  char up[2] = {};
  ASSERT_EQ(::read(pid.read.get(), up, 2), 2);
  parent->kill();
  EXPECT_EQ(held.all(), "");
}

TEST(Process, WhatIsForgottenIsKilled) {
  Heard held;
  {
    Command command = shell("exec sleep 1000");
    command.fds = {{held.write.get(), STDOUT_FILENO}};
    const Process process = started(command);
    EXPECT_GT(process.pid(), 0);
  }
  EXPECT_EQ(held.all(), "");
}

TEST(Process, IsCalledAsItsFirstWordSays) {
  Command command{.words = {"another", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"}, .file = "/bin/sh"};
  EXPECT_THAT(printed(command), StartsWith("another "));
}

}  // namespace
}  // namespace leat::subprocess
