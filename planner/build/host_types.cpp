#include "planner/build/host_types.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace leat::planner {
namespace {

// Two measurements of one kind of way differ by less.
constexpr double kSameWay = 1.5;

bool same_way(double a, double b) { return a == b || (a > 0 && b > 0 && std::max(a, b) < kSameWay * std::min(a, b)); }

// Whoever has the one may have the other.
bool interchangeable(const Host& host, std::uint32_t a, std::uint32_t b) {
  if (!same_way(host.gbps(a, b), host.gbps(b, a))) return false;
  for (std::uint32_t k = 0; k < host.partitions.size(); ++k) {
    if (k == a || k == b) continue;
    if (!same_way(host.gbps(a, k), host.gbps(b, k)) || !same_way(host.gbps(k, a), host.gbps(k, b))) return false;
  }
  return true;
}

// The slower of two, where 0 is in place.
double slower(double a, double b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

std::vector<double> pairs_of(const Host& host, const std::vector<std::vector<std::uint32_t>>& members) {
  std::vector<double> out;
  for (const auto& from : members) {
    for (const auto& to : members) {
      double gbps = 0;
      for (const std::uint32_t a : from)
        for (const std::uint32_t b : to) gbps = slower(gbps, host.gbps(a, b));
      out.push_back(gbps);
    }
  }
  return out;
}

}  // namespace

HostTypes types_of(const Host& host) {
  // The last: how many types of otherwise the same features reach in other ways.
  using Key =
      std::tuple<std::string, std::uint32_t, std::uint32_t, std::int64_t, double, double, double, std::uint32_t>;
  std::map<Key, std::size_t> known;
  HostTypes out;
  std::vector<std::set<std::uint32_t>> hosts;
  for (std::uint32_t k = 0; k < host.partitions.size(); ++k) {
    const HostPartition& h = host.partitions[k];
    const Partition& p = h.partition;
    Key key{p.partition_class, p.share, h.max_share, p.memory_bytes, p.price, p.watts, p.size, 0};
    for (auto same = known.find(key); same != known.end() && !host.handovers.empty(); same = known.find(key)) {
      const auto& members = out.members[same->second];
      if (std::all_of(members.begin(), members.end(), [&](std::uint32_t m) { return interchangeable(host, m, k); }))
        break;
      ++std::get<7>(key);
    }
    const auto [it, fresh] = known.emplace(key, out.types.size());
    if (fresh) {
      GpuType type{p.partition_class, 0, 1, h.max_share, p.share > 1 ? p.share : 0, p.memory_bytes};
      out.types.push_back(type);
      out.members.emplace_back();
      hosts.emplace_back();
    }
    ++out.types[it->second].count;
    out.members[it->second].push_back(k);
    hosts[it->second].insert(p.host);
  }
  for (std::size_t t = 0; t < out.types.size(); ++t) {
    out.types[t].gpus_per_server = static_cast<double>(out.types[t].count) / static_cast<double>(hosts[t].size());
  }
  if (!host.handovers.empty()) out.pair_gbps = pairs_of(host, out.members);
  return out;
}

}  // namespace leat::planner
