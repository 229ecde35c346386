// PoolBounds against a loop over the pool.
#include "engine/core/policy/reservations/pool_bounds.h"

#include <gtest/gtest.h>

#include <random>

namespace leat::core {
namespace {

TEST(PoolBounds, IsItsTwin) {
  std::mt19937_64 random(11);
  const auto below = [&](std::uint64_t n) { return static_cast<TimeNs>(random() % n); };
  for (const std::size_t count : {1u, 7u, 16u, 33u, 200u}) {
    std::vector<std::uint32_t> hosts;
    for (std::size_t i = 0; i < count; ++i) hosts.push_back(static_cast<std::uint32_t>(i % 3 == 0 ? i / 4 : i % 70));
    PoolBounds bounds(hosts);
    std::vector<StartBound> twin(count);
    for (int step = 0; step < 3000; ++step) {
      const std::size_t changed = random() % count;
      const TimeNs begin = below(300);
      twin[changed] = {begin - below(40), begin, begin + below(30)};
      bounds.set(changed, twin[changed]);
      ASSERT_EQ(bounds[changed], twin[changed]);
      const TimeNs near = below(250), run = 1 + below(40);
      const PoolBounds::Ready ready{near, near + below(20), static_cast<std::uint32_t>(random() % 70)};
      const bool narrows = random() % 2 == 0;  // each one found lowers the limit
      TimeNs limit = random() % 8 == 0 ? kNever : near + below(60);
      std::vector<std::pair<std::size_t, TimeNs>> found, expected;
      TimeNs left = limit;
      for (std::size_t i = 0; i < count; ++i) {
        const TimeNs start = twin[i].soonest(hosts[i] == ready.here ? ready.near_ns : ready.far_ns, run);
        if (start > left) continue;
        expected.emplace_back(i, start);
        if (narrows) left = start - 1;
      }
      bounds.search(ready, run, limit, [&](std::size_t i, TimeNs start) {
        found.emplace_back(i, start);
        if (narrows) limit = start - 1;
        return limit;
      });
      ASSERT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace leat::core
