// MpsDaemon with a stand-in for NVIDIA's control daemon (cuda/fake/mps_control.sh). Starting, stopping and what a
// killed process leaves behind are also held by bench/gpu/keeper_test.cpp and partitions_test.cpp.
#include "cuda/runtime/mps_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tools/base/subprocess/descendants.h"

namespace leat::gpu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
const std::string kFake = LEAT_FAKE_MPS;
constexpr std::chrono::seconds kTime{20};

class Mps : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(subprocess::adopt_orphans().ok());
    folder_ = "/tmp/leat-mps-test-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    EXPECT_TRUE(subprocess::kill_descendants(subprocess::after(kTime)).ok());
    fs::remove_all(folder_);
  }
  pid_t daemon_pid() const {
    int pid = 0;
    std::ifstream(folder_ + "/log/pids") >> pid;
    return pid;
  }
  std::string folder_;
};

TEST_F(Mps, StopsWhateverTheDaemonHasForked) {
  for (const char* way : {"", "-stubborn"}) {
    MpsDaemon daemon(folder_);
    DaemonOptions options{.program = kFake};
    if (*way != '\0') options.arguments = {way};
    const auto up = daemon.start(options);
    ASSERT_TRUE(up.ok()) << up.error();
    EXPECT_THAT(daemon.start(options).error(), HasSubstr("already"));
    EXPECT_FALSE(daemon.ended());
    const auto stopped = daemon.stop();
    EXPECT_TRUE(stopped.ok()) << stopped.error();
    EXPECT_TRUE(subprocess::children_of(::getpid()).empty());
    EXPECT_FALSE(fs::exists(folder_ + "/pipe"));
  }
}

TEST_F(Mps, ItsOwnEndIsTold) {
  MpsDaemon daemon(folder_);
  ASSERT_TRUE(daemon.start({.program = kFake}).ok());
  ASSERT_EQ(::kill(daemon_pid(), SIGKILL), 0);
  std::optional<subprocess::Ending> ending;
  for (const auto deadline = subprocess::after(kTime); !ending && subprocess::Clock::now() < deadline;)
    ending = daemon.ended();
  ASSERT_TRUE(ending.has_value());
  EXPECT_THAT(ending->text(), HasSubstr("signal 9"));
  EXPECT_TRUE(daemon.stop().ok());
}

TEST_F(Mps, WhatDoesNotStartSaysWhy) {
  MpsDaemon daemon(folder_);
  EXPECT_THAT(daemon.start({.program = kFake, .arguments = {"-broken"}}).error(),
              HasSubstr("ended with status 4: no device to control"));
  EXPECT_THAT(daemon.start({.program = "/no/such/program"}).error(), HasSubstr("cannot be started"));
}

}  // namespace
}  // namespace leat::gpu
