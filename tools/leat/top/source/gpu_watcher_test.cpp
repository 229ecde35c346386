// The watcher of GPUs: what it says is read, what it does not say is not known, and it ends with whoever started it.
#include "tools/leat/top/source/gpu_watcher.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "leat/leat.h"

namespace leat::tools::top {
namespace {

using namespace std::chrono_literals;

class Gpus : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/leat-gpus-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    ::unsetenv("LEAT_GPU");
    std::filesystem::remove_all(folder_);
  }
  void program(const std::string& words) {
    const std::string path = folder_ + "/watch";
    std::ofstream(path) << "#!/bin/sh\necho $$ > " << folder_ << "/pid\n" << words << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    ::setenv("LEAT_GPU", path.c_str(), 1);
  }
  template <class Is>
  static bool eventually(const Is& is) {
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (!is()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }
  std::string folder_;
};

TEST_F(Gpus, WhatTheWatcherSaysAndThatItEndsWithUs) {
  program(R"(echo '{"gpus":[{"uuid":"GPU-1","temperature_c":71,"power_w":312.4,"power_cap_w":400,"sm_clock_mhz":null,)"
          R"("memory_bytes":1073741824,"memory_used_bytes":524288000,"held_back":["power cap","heat"]}, 7]}'; cat)");
  pid_t pid = 0;
  {
    GpuWatcher watcher;
    std::vector<HeatFigures> gpus;
    ASSERT_TRUE(eventually([&] { return !(gpus = watcher.look(::leat_now_ns())).empty(); }));
    ASSERT_EQ(gpus.size(), 1U);
    EXPECT_EQ(gpus[0].uuid, "GPU-1");
    EXPECT_EQ(gpus[0].temperature_c, 71);
    EXPECT_FALSE(known(gpus[0].sm_clock_mhz)) << "null is not zero";
    EXPECT_EQ(gpus[0].memory_mib, 1024);
    EXPECT_EQ(gpus[0].held_back, "power cap, heat");
    EXPECT_TRUE(watcher.look(::leat_now_ns() + 6 * kSecondNs).empty()) << "a driver that hangs: not known any more";
    std::ifstream(folder_ + "/pid") >> pid;
    ASSERT_GT(pid, 1);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST_F(Gpus, AWatcherThatEndsOrTalksNonsenseIsNotStartedAtEachLook) {
  program("echo x >> " + folder_ + "/starts; echo nonsense; head -c 200000 /dev/zero");
  GpuWatcher watcher;
  const auto starts = [&] {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(folder_ + "/starts", none);
    return none ? 0 : bytes / 2;
  };
  const std::int64_t now = ::leat_now_ns();
  (void)watcher.look(now);
  ASSERT_TRUE(eventually([&] { return starts() == 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(watcher.look(now + i * kSecondNs).empty());
  EXPECT_EQ(starts(), 1U);
  EXPECT_TRUE(eventually([&] {
    (void)watcher.look(now + 31 * kSecondNs);
    return starts() == 2;
  }));
}

TEST_F(Gpus, WithoutTheProgramNothingIsKnown) {
  ::setenv("LEAT_GPU", (folder_ + "/none").c_str(), 1);
  GpuWatcher watcher;
  EXPECT_TRUE(watcher.look(::leat_now_ns()).empty());
}

}  // namespace
}  // namespace leat::tools::top
