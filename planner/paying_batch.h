// Which batch pays: a larger one when its rate is so many times the smaller one's, what a batch costs besides its run
// included. Less is within what measurements differ, and a larger batch makes whoever is in it wait for the others.
#pragma once

#include <cstdint>

namespace leat::planner {

inline constexpr double kPays = 1.05;
inline constexpr std::int64_t kHandOverNs = 50'000;  // of a batch, besides its run

[[nodiscard]] inline bool pays(std::uint32_t n, std::int64_t takes_ns, std::uint32_t than, std::int64_t than_ns) {
  return static_cast<double>(n) * static_cast<double>(than_ns) >=
         kPays * static_cast<double>(than) * static_cast<double>(takes_ns);
}

// From `first` on, of 1..most. run_ns(b): how long a batch of b runs.
template <class RunNs>
[[nodiscard]] std::uint32_t paying_batch(std::uint32_t first, std::uint32_t most, const RunNs& run_ns) {
  std::uint32_t best = first;
  for (std::uint32_t b = best + 1; b <= most; ++b)
    if (pays(b, run_ns(b) + kHandOverNs, best, run_ns(best) + kHandOverNs)) best = b;
  return best;
}

}  // namespace leat::planner
