// A configuration turned into one for trying things out (`leatd --trial`, `leat try`): one partition on every core,
// batches of one, no plan, an hour for every answer, and an hour for every batch. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/worker/link/protocol.h"

namespace leat::daemon {

// `cores`: those this host offers. A configuration without CPU partitions keeps the first of those it has.
void as_trial(Config& config, std::vector<std::uint32_t> cores);

// What a worker says that measured its modules alone (worker::Setup::alone_only), as if batches took no longer: a plan
// of that says no more than what is surely too much.
[[nodiscard]] worker::Ready as_alone(const worker::Setup& setup, worker::Ready ready);

}  // namespace leat::daemon
