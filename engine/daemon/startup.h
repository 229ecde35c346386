// What leatd finds out and takes before a worker runs: the deployment, the socket, the memory between stages. Control
// thread; may block for seconds. Errors are one line that says what to do.
#pragma once

#include <span>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "shm/src/protocol/listener.h"
#include "shm/src/segments/feature_slots.h"

namespace leat::daemon {

enum class Purpose : bool { serving, checking };

// From the configuration, the host's cores and devices, and where that is asked for a plan of leat-plan's; with every
// model's files opened and hashed. A check measures no devices.
// pinned: models that are open already, by the same paths.
Result<Deployment> find_deployment(Config& config, Purpose purpose, std::span<const worker::Setup> pinned = {});

// Holds the configured socket, or takes it from the service manager that holds it. A check only looks whether it could
// be held, and gets a listener without one.
Result<shm::Listener> take_socket(const Config& config, Purpose purpose);

// [edge]: the features' memory; of an edge in device memory nothing, since a worker makes that.
Result<std::vector<shm::FeaturePool>> make_feature_pools(const Config& config, const Deployment& deployment);

}  // namespace leat::daemon
