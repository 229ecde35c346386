// When batches are let overlap (overlap_gain.h), by what was measured.
#include "engine/worker/measuring/overlap_gain.h"

#include <gtest/gtest.h>

namespace leat::worker {
namespace {

TEST(OverlapGain, PaysWhereMediansAndNearlyEveryRoundSaySo) {
  const auto pays = [](std::int64_t behind, std::int64_t beside, std::uint32_t rounds, std::uint32_t won) {
    return OverlapGain{behind, beside, rounds, won}.pays();
  };
  EXPECT_TRUE(pays(110, 100, 7, 7));
  EXPECT_TRUE(pays(110, 100, 7, 6)) << "one was disturbed";
  EXPECT_FALSE(pays(150, 100, 7, 5)) << "by chance";
  EXPECT_FALSE(pays(150, 100, 3, 2));
  EXPECT_TRUE(pays(150, 100, 3, 3));
  EXPECT_FALSE(pays(104, 100, 7, 7)) << "too little";
}

TEST(OverlapGain, IsTheShareOfABatchThatTheNextOverlaps) {
  EXPECT_EQ((OverlapGain{100, 75, 7, 7}.overlap_permille()), 250u);
  EXPECT_EQ((OverlapGain{100, 120, 7, 0}.overlap_permille()), 0u);
}

}  // namespace
}  // namespace leat::worker
