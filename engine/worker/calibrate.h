// A quick measurement of a module on this very partition, for hosts without a profile: a few runs at some batch sizes
// on a grey frame, straight lines between them. `leat profile` measures better; this makes a fresh host serve at once.
// Uses the module alone: call it before serving, on the thread that will serve.
#pragma once

#include <vector>

#include "engine/exec/module.h"
#include "planner/profile.h"

namespace leat::worker {

// `crops`: the module takes crops of detections. [b-1], b = 1..batch; an error is the module's own line.
Result<std::vector<planner::Latency>> calibrate(exec::Module& module, std::uint32_t batch, bool crops);

// Loads caches and lets the runtime allocate what it allocates late.
Status warm_up(exec::Module& module, std::uint32_t batch, bool crops);

}  // namespace leat::worker
