// What the scheduler thread is given of a deployment before it starts. Control thread.
#pragma once

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

// The configuration's policy, and what spares hand-overs between leatd and its workers where batches are short.
core::Policy served_policy(const Config& config);

// The deployment's plan is complete. Stages: every one of every route, one after the other, with the sessions and edges
// that belong to them.
LoopOptions loop_options(const Config& config, const Deployment& deployment);

// The records of its partitions, modules and edges, which the scheduler thread counts in.
void begin_records(const Config& config, const Deployment& deployment, Metrics& metrics);

}  // namespace leat::daemon
