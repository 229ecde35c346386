#include "engine/sim/pool_links.h"

#include <algorithm>

namespace leat::sim {

void add_pool_links(core::Topology& topology, std::span<const PoolStage> pipeline, core::LinkSpec link) {
  for (std::size_t s = 0; s < pipeline.size(); ++s) {
    const PoolStage& stage = pipeline[s];
    const bool last = s + 1 == pipeline.size();
    const std::size_t together = last ? 1
                                      : std::size_t{std::max(stage.gpus_per_server, pipeline[s + 1].gpus_per_server)} *
                                            std::max(stage.shares, 1u);
    for (std::size_t i = 0; i < stage.pool.size(); ++i) {
      if (i % together == 0) topology.hosts.push_back(link);
      topology.partitions[stage.pool[i]].host = static_cast<std::uint32_t>(topology.hosts.size() - 1);
    }
  }
}

}  // namespace leat::sim
