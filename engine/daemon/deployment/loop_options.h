// What the scheduler thread is given of a deployment before it starts. Control thread.
#pragma once

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

// The configuration's policy, and what spares hand-overs between leatd and its workers where batches are short.
core::Policy served_policy(const Config& config);

LoopOptions loop_options(const Config& config, const Deployment& deployment, std::uint32_t slots);

// `topology`: the deployment's. Stages: every one of every route, one after the other, with the sessions and edges that
// belong to them.
PlanTables plan_tables(const Config& config, const Deployment& deployment, const core::Topology& topology,
                       std::uint32_t slots);

// The records of its partitions, modules and edges, which the scheduler thread counts in: of those that have none yet.
void begin_records(const Config& config, const Deployment& deployment, Metrics& metrics);

}  // namespace leat::daemon
