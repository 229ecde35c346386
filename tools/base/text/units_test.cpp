#include "tools/base/text/units.h"

#include <gtest/gtest.h>

namespace leat::text {
namespace {

TEST(Units, TimesAreInMillisecondsAndSeconds) {
  EXPECT_EQ(time_text(50'000), "0.05 ms");
  EXPECT_EQ(time_text(2'500'000), "2.5 ms");
  EXPECT_EQ(time_text(316'400'000), "316 ms");
  EXPECT_EQ(time_text(9'999'000'000), "9999 ms");
  EXPECT_EQ(time_text(12'500'000'000), "12.5 s");
  EXPECT_EQ(time_text(3'600'000'000'000), "3600 s");
  EXPECT_EQ(exact_time_text(50'000'000), "50 ms");
  EXPECT_EQ(exact_time_text(49'999'000), "49.999 ms") << "not what it was compared with";
}

TEST(Units, SizesAreInPowersOf1024) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1), "1 byte");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(3584), "3.5 KiB");
  EXPECT_EQ(bytes_text(12 << 20), "12 MiB");
  EXPECT_EQ(bytes_text(1024 * 1024 - 1), "1 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace leat::text
