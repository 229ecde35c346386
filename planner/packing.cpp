#include "planner/packing.h"

#include <algorithm>
#include <numeric>

namespace leat::planner {

std::vector<std::uint32_t> pack_shares(const std::vector<std::uint32_t>& shares, std::uint32_t devices) {
  std::uint64_t unit = 1;
  for (const std::uint32_t v : shares) unit = std::lcm(unit, std::uint64_t{v});
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] < shares[b]; });
  std::vector<std::uint32_t> device(shares.size(), 0);
  std::vector<std::size_t> rest;
  std::uint32_t used = 0;
  for (std::size_t k = 0; k < order.size();) {
    std::size_t end = k;
    while (end < order.size() && shares[order[end]] == shares[order[k]]) ++end;
    const std::uint32_t share = shares[order[k]];
    for (; end - k >= share; k += share, ++used) {
      for (std::size_t j = k; j < k + share; ++j) device[order[j]] = used;
    }
    for (; k < end; ++k) rest.push_back(order[k]);
  }
  std::vector<std::uint64_t> free;
  for (const std::size_t item : rest) {
    const std::uint64_t size = unit / shares[item];
    std::size_t d = 0;
    while (d < free.size() && free[d] < size) ++d;
    if (d == free.size()) free.push_back(unit);
    free[d] -= size;
    device[item] = used + static_cast<std::uint32_t>(d);
  }
  if (used + free.size() > devices) return {};
  return device;
}

}  // namespace leat::planner
