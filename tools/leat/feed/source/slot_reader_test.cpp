#include "tools/leat/feed/source/slot_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

namespace leat::tools {
namespace {

class SlotReading : public ::testing::TestWithParam<bool> {
 protected:
  SlotReading() : bytes_(1'000'003) {
    std::mt19937_64 random(11);
    for (auto& byte : bytes_) byte = static_cast<std::uint8_t>(random());
    file_ = ::memfd_create("slot-reader-test", MFD_CLOEXEC);
    EXPECT_EQ(::write(file_, bytes_.data(), bytes_.size()), static_cast<ssize_t>(bytes_.size()));
  }
  ~SlotReading() override { ::close(file_); }
  std::vector<std::uint8_t> bytes_;
  int file_;
};

TEST_P(SlotReading, ReadsPartsIntoSharedMemoryAndTellsTheEnd) {
  const std::size_t room = 1 << 20;
  const int slots = ::memfd_create("slots", MFD_CLOEXEC);  // as frame slots are: shared, not anonymous
  ASSERT_EQ(::ftruncate(slots, room), 0);
  auto* memory = static_cast<std::uint8_t*>(::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, slots, 0));
  ASSERT_NE(memory, MAP_FAILED);
  SlotReader reader(file_, GetParam());
  const iovec whole{.iov_base = memory, .iov_len = room};
  reader.register_memory({&whole, 1});
  if (!GetParam()) {
    EXPECT_EQ(reader.way(), "pread");
  }
  std::printf("way: %s\n", reader.way().c_str());

  std::vector<ReadPart> parts;  // more than one round of the ring, in a scattered order
  for (std::size_t i = 0; i < 100; ++i)
    parts.push_back({.to = memory + (99 - i) * 1000, .bytes = 1000, .offset = i * 5000});
  auto read = reader.read(parts);
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_TRUE(*read);
  for (const ReadPart& part : parts) EXPECT_EQ(std::memcmp(part.to, bytes_.data() + part.offset, part.bytes), 0);

  std::vector<std::uint8_t> elsewhere(2000);  // not registered: still right
  const ReadPart outside{.to = elsewhere.data(), .bytes = 2000, .offset = 7};
  EXPECT_TRUE(*reader.read({&outside, 1}));
  EXPECT_EQ(std::memcmp(elsewhere.data(), bytes_.data() + 7, 2000), 0);

  const ReadPart beyond{.to = memory, .bytes = 4000, .offset = bytes_.size() - 3999};
  auto end = reader.read({&beyond, 1});
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(*end);
  ::munmap(memory, room);
  ::close(slots);
}
INSTANTIATE_TEST_SUITE_P(Ways, SlotReading, ::testing::Values(true, false));

// As where io_uring is forbidden: here there is no descriptor left for a ring.
TEST(SlotReader, ReadsPlainlyWhereARingIsRefused) {
  const int file = ::memfd_create("slot-reader-test", MFD_CLOEXEC);
  ASSERT_EQ(::write(file, "abc", 3), 3);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  SlotReader reader(file);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(reader.way(), "pread");
  char to[3] = {};
  const ReadPart part{.to = to, .bytes = 3, .offset = 0};
  auto read = reader.read({&part, 1});
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_TRUE(*read);
  EXPECT_EQ(std::string(to, 3), "abc");
  ::close(file);
}

TEST(SlotReader, ABadDescriptorIsAnErrorWithItsCause) {
  for (const bool ring : {true, false}) {
    SlotReader reader(-1, ring);
    std::uint8_t byte = 0;
    const ReadPart part{.to = &byte, .bytes = 1, .offset = 0};
    auto read = reader.read({&part, 1});
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().find("Bad file descriptor"), std::string::npos) << read.error();
  }
}

}  // namespace
}  // namespace leat::tools
