// What the scheduler thread is given of a deployment before it starts. Control thread.
#pragma once

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

// Every stage of every route, one after the other, and the sessions and edges that belong to them.
void number_stages(const Deployment& deployment, LoopOptions& options);

// The records of its partitions, modules and edges, which the scheduler thread counts in.
void begin_records(const Config& config, const Deployment& deployment, CountersBoard& board);

}  // namespace leat::daemon
