// What each partition's worker is to open: the models, or the blocks of them, that its partition serves, the edges
// between stages that it reads and writes, and the device it has. Pure.
#pragma once

#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"

namespace leat::daemon {

[[nodiscard]] bool can_run(const PartitionConfig& partition, const ModuleConfig& module);

// Fills in Deployment::setups, session_of and tiny_hops; its partitions are known, and its plan where it has one.
Status make_setups(const Config& config, Deployment& deployment);

}  // namespace leat::daemon
