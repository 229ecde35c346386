// Large segments are huge pages where the kernel gives some, and whole and empty in any case.
#include "shm/src/segments/huge_pages.h"

#include <gtest/gtest.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {
namespace {

constexpr std::uint64_t kPieceBytes = 2 * kHugePageBytes, kSegmentBytes = 2 * kPieceBytes + kPage;

// Of the mapping that begins at `data`, in huge pages.
std::uint64_t huge_bytes(const std::byte* data) {
  std::ifstream maps("/proc/self/smaps");
  char start[32];
  std::snprintf(start, sizeof start, "%lx-", reinterpret_cast<unsigned long>(data));
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) here = line.starts_with(start);
    if (here && line.starts_with("ShmemPmdMapped:")) return std::stoull(line.substr(15)) << 10;
  }
  return 0;
}

std::uint64_t allocated_bytes(const Segment& s) {
  struct stat info {};
  EXPECT_EQ(fstat(s.fd(), &info), 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

std::uint64_t huge_bytes_of_a_segment_in_steps() {
  auto s = Segment::reserve("test", kSegmentBytes);
  EXPECT_TRUE(s) << s.error();
  for (std::uint64_t at = 0; at < kSegmentBytes; at += kPieceBytes) {
    EXPECT_TRUE(s->allocate(at, std::min(kPieceBytes, kSegmentBytes - at)));
    EXPECT_EQ(allocated_bytes(*s), std::min(at + kPieceBytes, kSegmentBytes))
        << "no more and no less than was asked for";
  }
  EXPECT_TRUE(std::all_of(s->data(), s->data() + kSegmentBytes, [](std::byte b) { return b == std::byte{0}; }));
  return huge_bytes(s->data());
}

// A kernel that has huge pages may lack one for a moment.
TEST(HugePages, ASegmentIsMadeOfThemInStepsToo) {
  std::uint64_t had = 0;
  for (int attempt = 0; attempt < 10 && had < 2 * kPieceBytes; ++attempt) had = huge_bytes_of_a_segment_in_steps();
#ifdef MADV_COLLAPSE
  // Whether this kernel has some: asked for in the plainest way, of a segment that is whole already.
  auto plain = Segment::reserve("test", kSegmentBytes);
  ASSERT_TRUE(plain && plain->allocate(0, kSegmentBytes));
  if (madvise(plain->data(), 2 * kPieceBytes, MADV_COLLAPSE) != 0) GTEST_SKIP() << "no huge pages to be had here";
  EXPECT_EQ(had, 2 * kPieceBytes);
#endif
}

TEST(HugePages, WhatIsThereStaysAsItIs) {
  auto s = Segment::create("test", kSegmentBytes, Seal::later);
  ASSERT_TRUE(s) << s.error();
  for (std::uint64_t at = 0; at < kSegmentBytes; at += kPage) s->data()[at] = std::byte{7};
  bring_huge_pages(s->fd(), s->data(), 0, kSegmentBytes);
  for (std::uint64_t at = 0; at < kSegmentBytes; at += kPage) ASSERT_EQ(s->data()[at], std::byte{7}) << at;
}

TEST(HugePages, OnlyWholeOnesAreBrought) {
  auto s = Segment::reserve("test", kSegmentBytes);
  ASSERT_TRUE(s) << s.error();
  bring_huge_pages(s->fd(), s->data(), kPage, kHugePageBytes);
  EXPECT_EQ(allocated_bytes(*s), 0u);
}

}  // namespace
}  // namespace leat::shm
