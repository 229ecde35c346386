#include "tools/leat/profile/grouping.h"

#include <algorithm>
#include <limits>

namespace leat::tools {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Splits segments 0..n-1 into `blocks` runs of least total cost(first, end), each run not longer than `bound`; empty:
// there is none. join(a, b): cost of two parts taken together.
template <class Cost, class Join>
std::vector<std::uint32_t> split(std::span<const std::int64_t> before, std::uint32_t blocks, std::int64_t bound,
                                 Cost cost, Join join) {
  const auto n = static_cast<std::uint32_t>(before.size() - 1);
  std::vector<std::vector<double>> best(blocks + 1, std::vector<double>(n + 1, kNever));
  std::vector<std::vector<std::uint32_t>> from(blocks + 1, std::vector<std::uint32_t>(n + 1, 0));
  best[0][0] = 0;
  for (std::uint32_t k = 1; k <= blocks; ++k) {
    for (std::uint32_t end = k; end <= n; ++end) {
      for (std::uint32_t first = k - 1; first < end; ++first) {
        if (before[end] - before[first] > bound) continue;
        const double total = join(best[k - 1][first], cost(first, end));
        if (total < best[k][end]) best[k][end] = total, from[k][end] = first;
      }
    }
  }
  std::vector<std::uint32_t> cuts;
  if (best[blocks][n] == kNever) return cuts;
  for (std::uint32_t k = blocks, end = n; k > 1; --k) cuts.push_back((end = from[k][end]) - 1);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

}  // namespace

Grouping group(std::span<const std::int64_t> segment_ns, std::span<const std::uint64_t> cut_bytes, std::uint32_t blocks,
               GroupBy by, double balance) {
  std::vector<std::int64_t> before{0};
  for (const auto ns : segment_ns) before.push_back(before.back() + ns);
  const auto length = [&](std::uint32_t first, std::uint32_t end) { return before[end] - before[first]; };
  const auto lengths = [&](const std::vector<std::uint32_t>& cuts) {
    std::vector<std::int64_t> out;
    std::uint32_t first = 0;
    for (const auto c : cuts) out.push_back(length(first, c + 1)), first = c + 1;
    out.push_back(length(first, static_cast<std::uint32_t>(segment_ns.size())));
    return out;
  };
  const auto sum = [](double a, double b) { return a + b; };
  const auto shortest = split(
      before, blocks, std::numeric_limits<std::int64_t>::max(),
      [&](auto f, auto e) { return static_cast<double>(length(f, e)); },
      [](double a, double b) { return std::max(a, b); });
  const auto of_shortest = lengths(shortest);
  const std::int64_t min = *std::max_element(of_shortest.begin(), of_shortest.end());
  Grouping out;
  if (by == GroupBy::time) {
    out.cuts = split(
        before, blocks, min,
        [&](auto f, auto e) { return static_cast<double>(length(f, e)) * static_cast<double>(length(f, e)); }, sum);
  } else {
    out.cuts = split(
        before, blocks, static_cast<std::int64_t>(static_cast<double>(min) * balance),
        [&](auto f, auto) { return f == 0 ? 0.0 : static_cast<double>(cut_bytes[f - 1]); }, sum);
  }
  out.block_ns = lengths(out.cuts);
  for (const auto c : out.cuts) out.bytes += cut_bytes[c];
  return out;
}

double imbalance(std::span<const std::int64_t> block_ns) {
  double total = 0, max = 0;
  for (const auto ns : block_ns) total += static_cast<double>(ns), max = std::max(max, static_cast<double>(ns));
  return total > 0 ? max * static_cast<double>(block_ns.size()) / total : 1;
}

}  // namespace leat::tools
