#include "planner/build/cpu_host.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace leat::planner {
namespace {

// Of the scheduler thread, for an item, where it sleeps between events: measured with the demo's application at full
// load.
constexpr double kSchedulerNs = 25'000;
constexpr double kUnknownItemNs = 1'000'000;

struct TopologyDeleter {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* b) const { hwloc_bitmap_free(b); }
};

}  // namespace

Result<std::vector<std::uint32_t>> usable_cores() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{"hwloc cannot start: out of memory"};
  const std::unique_ptr<hwloc_topology, TopologyDeleter> topology(raw);
  if (hwloc_topology_load(raw) != 0)
    return Error{std::string("hwloc cannot read this host's cores: ") + std::strerror(errno) + "; is /sys mounted?"};
  const std::unique_ptr<hwloc_bitmap_s, BitmapDeleter> allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(raw, allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return Error{std::string("hwloc cannot tell which cores this process may use: ") + std::strerror(errno)};
  std::vector<std::uint32_t> first, rest;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_CORE, core)) != nullptr) {
    bool taken = false;
    unsigned pu;
    hwloc_bitmap_foreach_begin(pu, core->cpuset) {
      if (hwloc_bitmap_isset(allowed.get(), pu)) (std::exchange(taken, true) ? rest : first).push_back(pu);
    }
    hwloc_bitmap_foreach_end();
  }
  first.insert(first.end(), rest.begin(), rest.end());
  if (first.empty()) return Error{"this process may use no core; check its cpuset"};
  return first;
}

double item_ns(std::span<const Latency> latency) {
  double best = latency.empty() ? kUnknownItemNs : 1e18;
  for (std::size_t b = 0; b < latency.size(); ++b)
    best = std::min(best, static_cast<double>(latency[b].p50_ns) / static_cast<double>(b + 1));
  return best;
}

std::vector<Partition> cpu_partitions(std::span<const std::uint32_t> cores, std::uint32_t each, double mean_item_ns) {
  each = std::clamp<std::uint32_t>(each, 1, static_cast<std::uint32_t>(std::max<std::size_t>(cores.size(), 1)));
  std::size_t count = cores.size() / each;
  if (cores.size() > each && static_cast<double>(count) * kSchedulerNs > mean_item_ns / 2)
    count = (cores.size() - 1) / each;
  std::vector<Partition> out;
  for (std::size_t k = 0; k < count; ++k) {
    Partition p;
    std::vector<std::uint32_t> own(cores.begin() + static_cast<std::ptrdiff_t>(k * each),
                                   cores.begin() + static_cast<std::ptrdiff_t>((k + 1) * each));
    for (const std::uint32_t core : own) p.selector += (p.selector.empty() ? "" : ",") + std::to_string(core);
    p.name = "cpu" + std::to_string(own.front());
    p.kind = PartitionKind::cpu;
    p.partition_class = "cpu:" + std::to_string(each);
    p.size = p.price = each;
    p.device = static_cast<std::uint32_t>(k);
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace leat::planner
