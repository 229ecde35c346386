// A value that is infinite or no number is found wherever it stands, in every type that has such values.
#include "engine/exec/decode/finite.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "engine/exec/picture/half.h"

namespace leat::exec {
namespace {

template <class T>
bool finite(const std::vector<T>& values, std::uint8_t dtype) {
  ItemTensor item;
  item.data = values.data();
  item.rank = 1;
  item.shape[0] = static_cast<std::int64_t>(values.size());
  item.dtype = dtype;
  return all_finite(item);
}

template <class T>
void try_everywhere(std::uint8_t dtype, T fine, const std::vector<T>& others) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{1024}, std::size_t{5000}}) {
    std::vector<T> values(count, fine);
    EXPECT_TRUE(finite(values, dtype)) << count;
    for (const T other : others)
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        values[at] = other;
        EXPECT_FALSE(finite(values, dtype)) << count << " at " << at;
        values[at] = fine;
      }
  }
}

TEST(Finite, IsAskedOfEveryValue) {
  using Single = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  try_everywhere<float>(LEAT_F32, -Single::max(), {Single::infinity(), -Single::infinity(), Single::quiet_NaN()});
  try_everywhere<float>(LEAT_F32, Single::denorm_min(), {-Single::quiet_NaN()});
  try_everywhere<double>(LEAT_F64, Double::max(), {Double::infinity(), Double::quiet_NaN()});
  try_everywhere<std::uint16_t>(LEAT_F16, half_of_float(-65504.0F),
                                {half_of_float(Single::infinity()), half_of_float(Single::quiet_NaN())});
  try_everywhere<std::uint16_t>(LEAT_BF16, 0x7f7f, {0x7f80, 0xff80, 0x7fc0});
}

TEST(Finite, WholeNumbersAre) {
  EXPECT_TRUE(finite(std::vector<std::int32_t>{-1, 0x7f800000}, LEAT_I32));
  EXPECT_TRUE(finite(std::vector<std::uint8_t>(64, 0xff), LEAT_U8));
  EXPECT_TRUE(all_finite(ItemTensor{}));
}

}  // namespace
}  // namespace leat::exec
