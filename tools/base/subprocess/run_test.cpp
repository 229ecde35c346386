#include "tools/base/subprocess/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace leat::subprocess {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
constexpr milliseconds kAmple{30'000};

Command script(const std::string& text) { return {.words = {"sh", "-c", text}}; }

TEST(Run, KeepsOutputAndErrors) {
  const auto apart = run(script("echo out; echo err >&2; exit 3"), {.limit = kAmple});
  ASSERT_TRUE(apart.ok()) << apart.error();
  EXPECT_EQ(apart->output, "out\n");
  EXPECT_EQ(apart->errors, "err\n");
  EXPECT_EQ(apart->ending.text(), "ended with status 3");
  const auto together = run(script("echo out; echo err >&2"), {.limit = kAmple, .errors = Errors::with_output});
  ASSERT_TRUE(together.ok());
  EXPECT_EQ(together->output, "out\nerr\n");
}

TEST(Run, GivesInputAndNoMoreThanAPipeHolds) {
  const auto echoed = run({.words = {"cat"}}, {.limit = kAmple, .input = "hello\n"});
  ASSERT_TRUE(echoed.ok());
  EXPECT_EQ(echoed->output, "hello\n");
  EXPECT_FALSE(run({.words = {"cat"}}, {.limit = kAmple, .input = std::string(5000, 'x')}).ok());
}

TEST(Run, KeepsOutputUpToItsLimitAndReadsOn) {
  const auto whole = run(script("head -c 3000000 /dev/zero"), {.limit = kAmple});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->output.size(), 3'000'000u);
  const auto part = run(script("head -c 3000000 /dev/zero"), {.limit = kAmple, .max_bytes = 1000});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->output.size(), 1000u);
  EXPECT_TRUE(part->ending.clean());
}

TEST(Run, KillsAtTheLimitWhateverIsIgnored) {
  const auto late =
      run(script("trap '' TERM INT HUP; echo begun; while :; do sleep 1000; done"), {.limit = milliseconds(200)});
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->ending.how, Ending::How::timed_out);
}

TEST(Run, EndsWithTheProcessAndLeavesNothingOfItsGroup) {
  const auto begin = Clock::now();
  const auto left = run(script("sleep 1000 & echo $!"), {.limit = milliseconds(600'000)});
  ASSERT_TRUE(left.ok());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  const auto pid = static_cast<pid_t>(std::stoi(left->output));
  // Killed, though somebody else may have to reap it: no signal reaches one that is gone.
  const auto gone = run(script("while [ -d /proc/" + std::to_string(pid) + " ] && ! grep -q 'State:.*Z' /proc/" +
                               std::to_string(pid) + "/status 2> /dev/null; do sleep 0.01; done"),
                        {.limit = milliseconds(20'000)});
  ASSERT_TRUE(gone.ok());
  EXPECT_TRUE(gone->ending.clean());
}

TEST(Run, OutputOfIsAnErrorUnlessTheEndIsClean) {
  const auto good = output_of(script("echo 7"), {.limit = kAmple});
  ASSERT_TRUE(good.ok()) << good.error();
  EXPECT_EQ(*good, "7\n");
  EXPECT_EQ(output_of(script("echo first; echo why >&2; exit 3"), {.limit = kAmple}).error(),
            "sh: ended with status 3: why");
  EXPECT_THAT(output_of({.words = {"sleep", "1000"}}, {.limit = milliseconds(50)}).error(), HasSubstr("killed"));
  EXPECT_THAT(output_of({.words = {"leat-no-such-program"}}, {.limit = kAmple}).error(),
              HasSubstr("cannot be started"));
}

TEST(Run, AFunctionMayCrashOrHangAndCostsAnAnswer) {
  const auto good = run_function([] { return std::string(200'000, 'x'); }, {.limit = kAmple});
  ASSERT_TRUE(good.ok()) << good.error();
  EXPECT_EQ(good->output.size(), 200'000u);
  EXPECT_TRUE(good->ending.clean());
  const auto died = run_function([]() -> std::string { return ::raise(SIGKILL), "never"; }, {.limit = kAmple});
  ASSERT_TRUE(died.ok());
  EXPECT_EQ(died->ending.how, Ending::How::signalled);
  EXPECT_EQ(died->output, "");
  const auto hung = run_function(
      []() -> std::string {
        for (;;) ::pause();
      },
      {.limit = milliseconds(50)});
  ASSERT_TRUE(hung.ok());
  EXPECT_EQ(hung->ending.how, Ending::How::timed_out);
}

TEST(Run, WhatAFunctionSaysOfErrorsIsKeptApart) {
  const auto talked = run_function(
      [] {
        (void)!::write(STDERR_FILENO, "noise\n", 6);
        return std::string("loads");
      },
      {.limit = kAmple});
  ASSERT_TRUE(talked.ok());
  EXPECT_EQ(talked->output, "loads");
  EXPECT_EQ(talked->errors, "noise\n");
}

TEST(Run, LastLineIsTheLastThatSaysSomething) {
  EXPECT_EQ(last_line("first\nwhy \n\n"), "why");
  EXPECT_EQ(last_line("only"), "only");
  EXPECT_EQ(last_line("\n \n"), "");
}

}  // namespace
}  // namespace leat::subprocess
