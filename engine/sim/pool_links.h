// The links of PPipe's authors' simulator (Kong et al., USENIX ATC 2025; read in their published code, the paper does
// not state them), beside the links of servers that a Topology describes by itself.
//
// There a pipeline's links belong to its pools, not to servers. Of a stage's pool, in the order of the list, every
// max(GPUs a server of this stage's type, of the next stage's) x (shares of one GPU) partitions have one uplink and one
// downlink together, each with the whole speed of a server's; at the last stage every partition has its own. So
//   - two pipelines, two DNNs, two stages never meet on a link, though a server holds GPUs of several;
//   - a type with few GPUs a server shares links as the type behind it does;
//   - nobody waits for another's features at the entrance of the last stage;
//   - a hop between GPUs of one server takes as long as any other.
// A transfer holds both its links for bytes / speed, as everywhere (engine/sim/simulator.h). The authors book both and
// let a transfer run on the uplink alone; where run times are exact that is the same.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/model/topology.h"

namespace leat::sim {

struct PoolStage {
  std::span<const core::PartitionId> pool;  // in the order of the plan
  std::uint32_t gpus_per_server = 1;        // of its GPU type
  std::uint32_t shares = 1;                 // that one GPU is cut into
};

// Gives the partitions of one pipeline links of their own: appends to `topology.hosts` and names them in the
// partitions' `host`. Call it for every pipeline of a topology, each partition in one stage of one of them.
void add_pool_links(core::Topology& topology, std::span<const PoolStage> pipeline, core::LinkSpec link);

}  // namespace leat::sim
