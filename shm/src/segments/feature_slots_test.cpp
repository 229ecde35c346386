// Feature slots: rows given out once, batches that lie together, and who may write.
#include "shm/src/segments/feature_slots.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace leat::shm {
namespace {

TEST(FeatureRows, GiveTheLowestRunThatFits) {
  FeatureRows rows({.rows = 130, .scrap = 64, .row_bytes = 8});
  EXPECT_EQ(rows.take(3), 0U);
  EXPECT_EQ(rows.take(60), 3U);
  EXPECT_EQ(rows.take(4), 63U) << "across two words";
  rows.give(0, 3);
  EXPECT_EQ(rows.take(4), 67U);
  EXPECT_EQ(rows.take(2), 0U);
  EXPECT_EQ(rows.in_use(), 70U);
}

TEST(FeatureRows, WithoutRoomTheScrapIsNamedAndNothingIsTaken) {
  FeatureRows rows({.rows = 4, .scrap = 4, .row_bytes = 8});
  for (std::uint32_t r = 0; r < 4; ++r) ASSERT_EQ(rows.take(1), r);
  rows.give(1, 1);
  rows.give(3, 1);
  EXPECT_TRUE(rows.scrap(rows.take(2))) << "two are free, but not together";
  rows.give(rows.take(2), 2);
  EXPECT_EQ(rows.in_use(), 2U);
  EXPECT_EQ(rows.take(1), 1U);
}

TEST(FeatureRowsDeathTest, ARowIsNotGivenBackTwice) {
  FeatureRows rows({.rows = 4, .scrap = 4, .row_bytes = 8});
  const std::uint32_t row = rows.take(2);
  rows.give(row, 1);
  EXPECT_DEATH(rows.give(row, 2), "");
}

TEST(FeatureRows, AgreeWithANaiveTwin) {
  std::mt19937 random(7);
  for (const std::uint32_t size : {1U, 63U, 64U, 65U, 300U}) {
    FeatureRows rows({.rows = size, .scrap = 64, .row_bytes = 8});
    std::vector<bool> used(size, false);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> held;
    for (int step = 0; step < 20000; ++step) {
      if (!held.empty() && random() % 2 == 0) {
        std::swap(held[random() % held.size()], held.back());
        const auto [first, count] = held.back();
        held.pop_back();
        rows.give(first, count);
        std::fill_n(used.begin() + first, count, false);
        continue;
      }
      const std::uint32_t count = 1 + random() % 8;
      std::uint32_t expected = size;
      for (std::uint32_t at = 0; at + count <= size && expected == size; ++at) {
        if (std::none_of(used.begin() + at, used.begin() + at + count, [](bool u) { return u; })) expected = at;
      }
      const std::uint32_t got = rows.take(count);
      ASSERT_EQ(got, expected) << "step " << step << " of " << size << " rows";
      if (rows.scrap(got)) continue;
      std::fill_n(used.begin() + got, count, true);
      held.push_back({got, count});
    }
    EXPECT_EQ(rows.in_use(), static_cast<std::uint32_t>(std::count(used.begin(), used.end(), true)));
  }
}

TEST(FeaturePool, TheNextStageSeesWhatWasWrittenAndCannotWrite) {
  const FeatureSpec spec{.rows = 10, .scrap = 4, .row_bytes = 1000};
  auto pool = FeaturePool::create(spec);
  ASSERT_TRUE(pool.ok()) << pool.error();
  auto writer = FeatureView::map(spec, std::move(*pool->for_producer()), Access::read_write);
  auto fd = pool->for_consumer();
  ASSERT_TRUE(fd.ok()) << fd.error();
  EXPECT_EQ(::mmap(nullptr, spec.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
  auto reader = FeatureView::map(spec, std::move(*fd), Access::read_only);
  ASSERT_TRUE(writer.ok() && reader.ok());
  EXPECT_EQ(writer->row(3) + 1000, writer->row(4)) << "a batch is dense";
  for (std::uint32_t row : {0U, 9U, 13U}) {
    std::memset(writer->row(row), static_cast<int>(row + 1), 1000);
    EXPECT_EQ(reader->row(row)[999], static_cast<std::byte>(row + 1));
  }
  EXPECT_EQ(::mprotect(reader->row(0) - kPage, kPage, PROT_READ | PROT_WRITE), -1);
}

TEST(FeaturePool, AnotherSizeIsRefused) {
  const FeatureSpec spec{.rows = 10, .scrap = 4, .row_bytes = 1000};
  auto pool = FeaturePool::create(spec);
  ASSERT_TRUE(pool.ok());
  EXPECT_FALSE(FeatureView::map({.rows = 40, .scrap = 4, .row_bytes = 1000}, std::move(*pool->for_producer()),
                                Access::read_write)
                   .ok());
}

}  // namespace
}  // namespace leat::shm
