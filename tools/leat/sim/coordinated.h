// leat sim --coordinated (docs/guide/coordinated-streams.md).
#pragma once

#include "engine/sim/study.h"
#include "tools/base/cli/command.h"

namespace leat::tools {

// Runs and prints; the exit status. Of the study's arrivals nothing is used.
int simulate_coordinated(const cli::Arguments& args, const sim::Study& study, const core::Policy& policy);

}  // namespace leat::tools
