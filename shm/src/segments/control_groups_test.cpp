// The quota of CPU time, read from a folder that plays /proc and /sys/fs/cgroup.
#include "shm/src/segments/control_groups.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace leat::shm {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public ::testing::Test {
 protected:
  ControlGroups() {
    char name[] = "/tmp/leat_groups_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~ControlGroups() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text;
  }
  std::string quota() const {
    const CpuQuota q = cpu_quota(root_);
    return q.cores == 0 ? "none" : quota_text(q) + " of " + q.where.substr(root_.size());
  }
  std::string root_;
};

TEST_F(ControlGroups, AUnitsQuotaIsInItsOwnGroup) {
  write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/proc/self/cgroup", "0::/system.slice/leatd.service\n");
  EXPECT_EQ(quota(), "none");
  write("/sys/fs/cgroup/system.slice/leatd.service/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), "none");
  write("/sys/fs/cgroup/system.slice/leatd.service/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), "0.5 cores of /sys/fs/cgroup/system.slice/leatd.service/cpu.max");
  write("/sys/fs/cgroup/system.slice/cpu.max", "25000 100000\n");
  EXPECT_EQ(quota(), "0.25 cores of /sys/fs/cgroup/system.slice/cpu.max") << "the tightest counts";
}

TEST_F(ControlGroups, OfVersionOneItIsTwoFiles) {
  write("/proc/self/mountinfo", "30 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/docker/a\n");
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/docker/a/";
  write(folder + "cpu.cfs_quota_us", "-1\n"), write(folder + "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), "none");
  write(folder + "cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(quota(), "1 core of " + folder + "cpu.cfs_quota_us");
  write(folder + "cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota(), "2.5 cores of " + folder + "cpu.cfs_quota_us");
}

TEST_F(ControlGroups, OfAContainerItIsAtTheMount) {
  write("/proc/self/mountinfo", "30 23 0:27 /docker/a /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  write("/proc/self/cgroup", "4:cpu:/docker/a\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"), write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), "3 cores of /sys/fs/cgroup/cpu/cpu.cfs_quota_us");
}

}  // namespace
}  // namespace leat::shm
