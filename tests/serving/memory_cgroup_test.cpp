// leatd in a memory cgroup that is smaller than its configuration thinks: it says so, streams that do not fit are
// refused, and the kernel has nobody to kill. Needs root and a hierarchy of cgroups that may be written to.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

// Where this process's memory cgroup is; empty: nowhere, or another one could not be made there.
std::string own_group() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string path = line.substr(line.find(':', line.find(':') + 1) + 1);
    for (const auto& [begins, mount] :
         {std::pair{":memory:", "/sys/fs/cgroup/memory"}, std::pair{"0::", "/sys/fs/cgroup"}})
      if (line.find(begins) != std::string::npos && fs::exists(mount + path + "/cgroup.procs") &&
          (mount == std::string("/sys/fs/cgroup/memory") ||
           (std::ifstream(mount + path + "/cgroup.subtree_control") >> line &&
            line.find("memory") != std::string::npos)))
        return mount + path;
  }
  return {};
}

class Group {
 public:
  explicit Group(std::uint64_t bytes) : path_(own_group()) {
    if (path_.empty()) return;
    path_ += "/leat-test-" + std::to_string(getpid());
    std::error_code error;
    if (!fs::create_directory(path_, error)) path_.clear();
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"})
      if (!path_.empty() && fs::exists(path_ + file))
        made_ |= static_cast<bool>(std::ofstream(path_ + file) << bytes << std::flush);
  }
  ~Group() {
    if (!path_.empty()) (void)eventually([&] { return rmdir(path_.c_str()) == 0; });
  }
  explicit operator bool() const { return made_; }
  // Words that put a program into it.
  std::vector<std::string> prefix() const {
    return {"/bin/sh", "-c", "echo $$ > " + path_ + "/cgroup.procs && exec \"$@\"", "sh"};
  }

 private:
  std::string path_;
  bool made_ = false;
};

constexpr const char* kConfig = R"(
[[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 1000
  [[application.module]]
  name = "sum"
  latency_ms = [0.1]
)";

// A stream of about so many MiB.
Result<Stream> open(Client& client, std::uint32_t mib) {
  StreamOptions o;
  o.application = "echo";
  o.format = LEAT_FORMAT_gray8;
  o.width = 2048, o.height = 1024;
  o.depth = 4, o.slots = mib / 2;
  return client.open_stream(o);
}

TEST(MemoryCgroup, WhatDoesNotFitIsRefusedAndLeatdLives) {
  const Group group(400 * kMiB);
  if (getuid() != 0 || !group) GTEST_SKIP() << "no memory cgroup can be made here";
  Leatd leatd(kConfig, {}, group.prefix());
  ASSERT_TRUE(leatd.alive());
  EXPECT_NE(leatd.log().find("not memory_mib = 2048: /sys/fs/cgroup/"), std::string::npos) << leatd.log();
  auto client = Client::connect(leatd.socket(), "greedy");
  ASSERT_TRUE(client.ok()) << client.error();
  // Each within the defaults; all together half as much again as there is.
  std::vector<Stream> kept;
  std::string refusal;
  for (int i = 0; i < 12; ++i) {
    auto stream = open(*client, 50);
    if (stream.ok())
      kept.push_back(std::move(*stream));
    else
      refusal = stream.error();
  }
  EXPECT_GE(kept.size(), 4U) << refusal;
  EXPECT_LE(kept.size(), 7U);
  // By what all streams together may have, or by what the group still has: whichever was reached first.
  EXPECT_NE(refusal.find(" MiB"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("/sys/fs/cgroup/"), std::string::npos) << refusal;
  ASSERT_TRUE(leatd.alive()) << leatd.log();
  // Every page of them is really there.
  for (auto& stream : kept) {
    std::vector<Frame> frames;
    while (auto frame = stream.acquire()) {
      (void)paint(frame->raw(), 7);
      frames.push_back(std::move(*frame));
    }
    EXPECT_EQ(frames.size(), 25U);
  }
  ASSERT_TRUE(leatd.alive()) << leatd.log();
  const auto user = leatd.record(shm::RecordKind::user, 0);
  ASSERT_TRUE(user);
  EXPECT_GT(user->causes[static_cast<std::size_t>(shm::Refusal::no_memory)], 0U);
  kept.clear();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
