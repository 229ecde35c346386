#include "engine/core/policy/path.h"

#include <algorithm>

namespace leat::core {

Path choose_path(const StateView& view, RouteId id, PartitionId first, std::uint32_t items, TimeNs start) noexcept {
  const RouteSpec& route = view.route(id);
  const std::size_t size = std::min(items, route.batch) - 1;
  Path path;
  TimeNs end = 0;
  std::size_t k = 0;
  const auto free_ns = [&](PartitionId p) {
    TimeNs at = view.machine.partition(p).free_ns - view.machine.partition(p).overlap_ns;
    for (std::size_t i = 0; i < k; ++i) at = path.partition[i] == p ? path.end_ns[i] : at;
    return at;
  };
  for (; k < route.stages.size(); ++k) {
    const StageSpec& stage = route.stages[k];
    PartitionId best = k == 0 ? first : kNone;
    for (std::size_t i = 0; k > 0 && i < stage.pool.size(); ++i) {
      const PartitionId p = stage.pool[i];
      if (view.machine.partition(p).up && (best == kNone || free_ns(p) < free_ns(best))) best = p;
    }
    if (best == kNone) best = stage.pool.front();  // none is up: the batch comes back when it gets there
    const TimeNs moved =
        k == 0 ? 0 : view.model.link_ns(route.stages[k - 1].transfer_bytes * items, path.partition[k - 1], best);
    path.partition[k] = best;
    end = std::max(k == 0 ? start : end + moved, free_ns(best)) + stage.latency.p50_ns[size];
    path.end_ns[k] = end;
  }
  return path;
}

}  // namespace leat::core
