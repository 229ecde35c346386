// leat sim --replay: a record of leatd's, done again by the same core.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::tools {

// Prints how many of the recorded actions are the same, or the first that differs. Exit status: 0 all, 1 not all, 2 no
// record, or one that cannot be replayed (one line on standard error). Precondition: one thread.
int replay_record(const cli::Arguments& args);

}  // namespace leat::tools
