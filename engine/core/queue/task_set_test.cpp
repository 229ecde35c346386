// TaskSet against std::set.
#include "engine/core/queue/task_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace leat::core {
namespace {

TEST(TaskSet, IsItsTwin) {
  std::mt19937_64 random(17);
  for (const std::uint32_t size : {1u, 64u, 65u, 5000u, 70'000u}) {
    TaskSet set(size);
    std::set<std::uint32_t> twin;
    for (int step = 0; step < 3000; ++step) {
      const auto id = static_cast<std::uint32_t>(random() % size);
      if (random() % 2 == 0) {
        set.insert(id);
        twin.insert(id);
      } else {
        const std::uint32_t gone = twin.empty() || random() % 4 == 0 ? id : *twin.begin();
        set.erase(gone);
        twin.erase(gone);
      }
      ASSERT_EQ(set.has(id), twin.contains(id));
      if (step % 16 != 0) continue;
      std::vector<std::uint32_t> found;
      set.for_each([&](std::uint32_t i) { found.push_back(i); });
      ASSERT_EQ(found, std::vector<std::uint32_t>(twin.begin(), twin.end()));
    }
  }
}

}  // namespace
}  // namespace leat::core
