// What there is to be had, read from a folder that plays /proc and /sys/fs/cgroup.
#include "shm/src/segments/available_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leat::shm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() : root_((fs::temp_directory_path() / "leat-cgroups-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    write("/proc/meminfo", "MemTotal:   16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n");
  }
  ~AvailableMemoryTest() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void write(const std::string& path, std::uint64_t number) const { write(path, std::to_string(number) + "\n"); }
  void mount(const std::string& lines) const { write("/proc/self/mountinfo", lines); }
  MemoryRoom room() const { return AvailableMemory(root_).room(); }

  std::string root_;
};

constexpr const char* kVersion2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kVersion1 =
    "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST_F(AvailableMemoryTest, WithoutACgroupIsTheHostsAndSomeIsKept) {
  EXPECT_EQ(room().bytes, (8192 - 256) * kMiB);
  EXPECT_EQ(room().where, "this host");
  EXPECT_EQ(AvailableMemory(root_).room_in_group().bytes, UINT64_MAX);
}

TEST_F(AvailableMemoryTest, InVersion2TheTightestOfAllAboveCounts) {
  mount(kVersion2);
  write("/proc/self/cgroup", "0::/system.slice/leatd.service\n");
  const std::string slice = "/sys/fs/cgroup/system.slice/", group = slice + "leatd.service/";
  write(group + "memory.max", "max\n");
  write(group + "memory.high", "max\n");
  write(group + "memory.current", 300 * kMiB);
  EXPECT_EQ(room().where, "this host");
  write(slice + "memory.max", 1600 * kMiB);
  write(slice + "memory.current", 700 * kMiB);
  EXPECT_EQ(room().bytes, (1600 - 100 - 700) * kMiB);
  EXPECT_EQ(room().where, root_ + slice + "memory.max");
  write(group + "memory.high", 800 * kMiB);  // above that the kernel makes who asks wait
  EXPECT_EQ(room().bytes, (800 - 50 - 300) * kMiB);
  EXPECT_EQ(room().where, root_ + group + "memory.high");
  write(group + "memory.max", 400 * kMiB);
  EXPECT_EQ(room().bytes, (400 - 25 - 300) * kMiB);
  EXPECT_EQ(AvailableMemory(root_).room_in_group().bytes, (400 - 25 - 300) * kMiB);
}

TEST_F(AvailableMemoryTest, PageCacheCanBeTakenBackAndTheSegmentsCannot) {
  mount(kVersion2);
  write("/proc/self/cgroup", "0::/a\n");
  write("/sys/fs/cgroup/a/memory.max", 400 * kMiB);
  write("/sys/fs/cgroup/a/memory.current", 390 * kMiB);
  EXPECT_EQ(room().bytes, 0U);
  write("/sys/fs/cgroup/a/memory.stat", "anon 1\nfile 314572800\nshmem 104857600\ninactive_file " +
                                            std::to_string(100 * kMiB) + "\nactive_file " + std::to_string(80 * kMiB) +
                                            "\n");
  EXPECT_EQ(room().bytes, (400 - 25 - 390 + 100 + 40) * kMiB);
}

TEST_F(AvailableMemoryTest, InVersion1TheMemoryControllersHierarchyCounts) {
  mount(kVersion1);
  write("/proc/self/cgroup", "9:cpu:/x\n4:memory:/a/b\n0::/z\n");
  const std::string base = "/sys/fs/cgroup/memory/";
  write(base + "memory.limit_in_bytes", 9223372036854771712u);
  write(base + "a/memory.limit_in_bytes", 9223372036854771712u);
  write(base + "a/b/memory.limit_in_bytes", 9223372036854771712u);
  EXPECT_EQ(room().where, "this host");
  write(base + "a/memory.limit_in_bytes", 400 * kMiB);
  write(base + "a/memory.usage_in_bytes", 100 * kMiB);
  EXPECT_EQ(room().bytes, (400 - 25 - 100) * kMiB);
  write(base + "a/memory.usage_in_bytes", 500 * kMiB);
  write(base + "a/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(room().bytes, (400 - 25 - 500 + 200) * kMiB);
}

TEST_F(AvailableMemoryTest, AContainerFindsItsOwnWhereItIsMounted) {
  mount("31 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", 400 * kMiB);
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", 0);
  EXPECT_EQ(room().bytes, 375 * kMiB);
}

TEST_F(AvailableMemoryTest, WhatFitsIsSaid) {
  mount(kVersion2);
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", 400 * kMiB);
  write("/sys/fs/cgroup/memory.current", 75 * kMiB);
  const AvailableMemory memory(root_);
  MemoryRoom left;
  EXPECT_TRUE(memory.fits(300 * kMiB, &left));
  EXPECT_FALSE(memory.fits(300 * kMiB + 1, &left));
  EXPECT_EQ(left.bytes, 300 * kMiB);
}

TEST_F(AvailableMemoryTest, NothingReadableIsNoLimit) {
  fs::remove_all(root_ + "/proc");
  EXPECT_EQ(room().bytes, UINT64_MAX);
}

}  // namespace
}  // namespace leat::shm
