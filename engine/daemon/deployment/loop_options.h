// What the scheduler thread is given of a deployment before it starts. Control thread.
#pragma once

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

// The deployment's plan is complete. Stages: every one of every route, one after the other, with the sessions and edges
// that belong to them.
LoopOptions loop_options(const Config& config, const Deployment& deployment);

// The records of its partitions, modules and edges, which the scheduler thread counts in.
void begin_records(const Config& config, const Deployment& deployment, Metrics& metrics);

}  // namespace leat::daemon
