#include "tools/base/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::cli {
namespace {

TEST(ProgressLine, FitsAnyWidth) {
  for (unsigned columns = 1; columns < 300; ++columns) {
    for (const std::uint64_t done : {0ULL, 1ULL, 499ULL, 1000ULL, 5000ULL}) {
      EXPECT_LE(progress_line("encoding", done, 1000, "frames", 3.0, "stream 2", columns).size(), columns);
    }
  }
}

TEST(ProgressLine, SaysHowMuchAndHowLong) {
  const std::string line = progress_line("encoding", 250, 1000, "frames", 10, "", 100);
  EXPECT_THAT(line, ::testing::HasSubstr(" 25 %  250/1000 frames, 30 s left"));
  EXPECT_THAT(line, ::testing::HasSubstr("[=="));
  EXPECT_THAT(progress_line("reading", 7, 0, "MB", 10, "", 100), ::testing::HasSubstr("reading 7 MB"));
  EXPECT_THAT(progress_line("reading", 10, 10, "MB", 10, "", 100), ::testing::Not(::testing::HasSubstr("left")));
  EXPECT_THAT(progress_line("x", 1, 100, "MB", 10, "", 100), ::testing::HasSubstr("16 min 30 s left"));
  EXPECT_THAT(progress_line("x", 1, 2, "MB", 6150, "", 100), ::testing::HasSubstr("1 h 42 min left"));
}

}  // namespace
}  // namespace leat::cli
