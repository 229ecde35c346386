#include "planner/host_types.h"

#include <map>
#include <set>
#include <tuple>

namespace leat::planner {

HostTypes types_of(const Host& host) {
  using Key = std::tuple<std::string, std::uint32_t, std::uint32_t, std::int64_t, double, double, double>;
  std::map<Key, std::size_t> known;
  HostTypes out;
  std::vector<std::set<std::uint32_t>> hosts;
  for (std::uint32_t k = 0; k < host.partitions.size(); ++k) {
    const HostPartition& h = host.partitions[k];
    const Partition& p = h.partition;
    const auto [it, fresh] = known.emplace(
        Key{p.partition_class, p.share, h.max_share, p.memory_bytes, p.price, p.watts, p.size}, out.types.size());
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
  return out;
}

}  // namespace leat::planner
