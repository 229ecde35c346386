// A configuration turned into one for trying things out (`leatd --trial`, `leat try`): one partition on every core,
// batches of one, no plan, an hour for every answer, and an hour for every batch. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/daemon/config.h"

namespace leat::daemon {

// `cores`: those this host offers. A configuration without CPU partitions keeps the first of those it has.
void as_trial(Config& config, std::vector<std::uint32_t> cores);

}  // namespace leat::daemon
