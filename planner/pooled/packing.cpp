#include "planner/pooled/packing.h"

#include <algorithm>
#include <numeric>

namespace leat::planner {
namespace {

constexpr std::size_t kTryAll = 12;  // items; shares of 1/1 to 1/4 leave at most six over

// Places sizes[k..] into devices with room left; equal rooms are tried once. False: it cannot be done.
bool place(const std::vector<std::uint64_t>& sizes, std::size_t k, std::vector<std::uint64_t>& room,
           std::vector<std::uint32_t>& at) {
  if (k == sizes.size()) return true;
  for (std::uint32_t d = 0; d < room.size(); ++d) {
    if (room[d] < sizes[k] || std::find(room.begin(), room.begin() + d, room[d]) != room.begin() + d) continue;
    room[d] -= sizes[k];
    at[k] = d;
    if (place(sizes, k + 1, room, at)) return true;
    room[d] += sizes[k];
  }
  return false;
}

// First fit, in the order given.
std::vector<std::uint32_t> first_fit(const std::vector<std::uint64_t>& sizes, std::uint64_t unit) {
  std::vector<std::uint64_t> room;
  std::vector<std::uint32_t> at;
  for (const std::uint64_t size : sizes) {
    std::uint32_t d = 0;
    while (d < room.size() && room[d] < size) ++d;
    if (d == room.size()) room.push_back(unit);
    room[d] -= size;
    at.push_back(d);
  }
  return at;
}

}  // namespace

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
  std::vector<std::uint64_t> sizes;
  for (const std::size_t item : rest) sizes.push_back(unit / shares[item]);
  const std::uint64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  std::vector<std::uint32_t> at(sizes.size());
  std::vector<std::uint64_t> room((sum + unit - 1) / unit, unit);
  if (sizes.size() > kTryAll || !place(sizes, 0, room, at)) at = first_fit(sizes, unit);
  std::uint32_t max = used;
  for (std::size_t k = 0; k < rest.size(); ++k) {
    device[rest[k]] = used + at[k];
    max = std::max(max, used + at[k] + 1);
  }
  if (max > devices) return {};
  return device;
}

}  // namespace leat::planner
