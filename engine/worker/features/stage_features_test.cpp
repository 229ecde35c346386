// A batch's features as its stage finds them: in place when they lie together, gathered when they do not.
#include "engine/worker/features/stage_features.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace leat::worker {
namespace {

constexpr shm::FeatureSpec kSpec{.rows = 16, .scrap = 8, .row_bytes = 100};

class StageFeaturesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pool = shm::FeaturePool::create(kSpec);
    ASSERT_TRUE(pool.ok()) << pool.error();
    auto view = shm::FeatureView::map(kSpec, std::move(*pool->for_producer()), shm::Access::read_write);
    ASSERT_TRUE(view.ok()) << view.error();
    view_ = std::move(*view);
    for (std::uint32_t r = 0; r < kSpec.rows; ++r) std::memset(view_.row(r), static_cast<int>(r), kSpec.row_bytes);
    auto module = exec::Module::open({.name = "m",
                                      .executor = "emulated",
                                      .batch_max = 8,
                                      .first_block = 1,
                                      .first_stage = false,
                                      .emulated_in = kSpec.row_bytes});
    ASSERT_TRUE(module.ok()) << module.error();
    module_ = std::move(*module);
  }
  static std::vector<DispatchCell> cells(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> rows) {
    std::vector<DispatchCell> out;
    for (const auto& [row, items] : rows) {
      out.emplace_back();
      out.back().row_in = row;
      out.back().items = static_cast<std::uint16_t>(items);
    }
    return out;
  }
  shm::FeatureView view_;
  std::unique_ptr<exec::Module> module_;
};

TEST_F(StageFeaturesTest, TogetherIsInPlace) {
  auto features = StageFeatures::open(*module_, &view_, nullptr);
  ASSERT_TRUE(features.ok()) << features.error();
  std::uint32_t copied = 0;
  EXPECT_EQ(features->input(cells({{3, 1}, {4, 2}, {6, 1}}), &copied), view_.row(3));
  EXPECT_EQ(copied, 0U);
  EXPECT_EQ(features->output(cells({{3, 1}})), nullptr);
}

TEST_F(StageFeaturesTest, ApartIsGatheredAndCounted) {
  auto features = StageFeatures::open(*module_, &view_, nullptr);
  ASSERT_TRUE(features.ok());
  std::uint32_t copied = 0;
  const std::byte* in = features->input(cells({{1, 1}, {5, 2}, {9, 1}}), &copied);
  EXPECT_EQ(copied, 4U);
  const std::uint32_t expected[] = {1, 5, 6, 9};
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::memcmp(in + i * kSpec.row_bytes, view_.row(expected[i]), kSpec.row_bytes), 0) << i;
}

// Another device's memory is read once: what lies together is copied too.
TEST_F(StageFeaturesTest, APeersRowsAreCopiedAlthoughTheyLieTogether) {
  auto features = StageFeatures::open(*module_, &view_, nullptr, true);
  ASSERT_TRUE(features.ok());
  std::uint32_t copied = 0;
  const std::byte* in = features->input(cells({{3, 1}, {4, 2}}), &copied);
  EXPECT_EQ(copied, 3U);
  ASSERT_NE(in, view_.row(3));
  EXPECT_EQ(std::memcmp(in, view_.row(3), 3 * kSpec.row_bytes), 0);
}

TEST_F(StageFeaturesTest, AModelOfOtherBytesIsOneLine) {
  auto module = exec::Module::open(
      {.name = "other", .executor = "emulated", .first_block = 1, .first_stage = false, .emulated_in = 96});
  ASSERT_TRUE(module.ok());
  const auto features = StageFeatures::open(**module, &view_, nullptr);
  ASSERT_FALSE(features.ok());
  EXPECT_EQ(features.error().substr(0, 64), "other: an item before this stage has 96 bytes, the plan says 100")
      << features.error();
}

}  // namespace
}  // namespace leat::worker
