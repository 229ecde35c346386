// MinTree against a plain array.
#include "engine/core/policy/reservations/min_tree.h"

#include <gtest/gtest.h>

#include <random>

namespace leat::core {
namespace {

TEST(MinTree, IsItsTwin) {
  std::mt19937_64 random(7);
  for (const std::size_t count : {1u, 2u, 5u, 64u, 100u}) {
    MinTree tree(count);
    std::vector<TimeNs> twin(count, kNever);
    for (int step = 0; step < 2000; ++step) {
      const std::size_t i = random() % count;
      twin[i] = random() % 8 == 0 ? kNever : static_cast<TimeNs>(random() % 50);
      tree.set(i, twin[i]);
      ASSERT_EQ(tree.min(), *std::ranges::min_element(twin));
      ASSERT_EQ(tree[i], twin[i]);
      const auto now = static_cast<TimeNs>(random() % 60);
      const bool moves = random() % 4 == 0;  // what has come is put off, while it is gone through
      std::vector<std::size_t> found, expected;
      for (std::size_t k = 0; k < count; ++k)
        if (twin[k] <= now) expected.push_back(k);
      tree.for_each_by(now, [&](std::size_t k) {
        found.push_back(k);
        if (moves) tree.set(k, twin[k] = now + 1);
      });
      ASSERT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace leat::core
