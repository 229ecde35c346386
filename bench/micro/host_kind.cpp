#include "bench/micro/host_kind.h"

#include <hwloc.h>

namespace leat::bench {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMi = 1 << 20;
  return bytes >= kMi ? std::to_string(bytes / kMi) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

HostKind host_kind() {
  HostKind kind{.processor = "unknown processor", .cores = 0, .caches = ""};
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return kind;
  if (hwloc_topology_load(topology) == 0) {
    const auto cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    kind.cores = cores > 0 ? static_cast<std::uint32_t>(cores) : 0;
    hwloc_obj_t at = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);
    for (; at != nullptr; at = at->parent) {
      if (const char* model = hwloc_obj_get_info_by_name(at, "CPUModel")) kind.processor = model;
      if (!hwloc_obj_type_is_dcache(at->type)) continue;
      const int sharers = hwloc_bitmap_weight(at->cpuset);
      kind.caches += (kind.caches.empty() ? "" : ", ") + std::string(hwloc_obj_type_string(at->type)) + " " +
                     size_text(at->attr->cache.size) +
                     (sharers > 1 ? " (" + std::to_string(sharers) + " share it)" : "");
    }
  }
  hwloc_topology_destroy(topology);
  if (kind.caches.empty()) kind.caches = "caches unknown";
  return kind;
}

}  // namespace leat::bench
