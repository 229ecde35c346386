// leat sim --replay with --presets, --plan, --without or --twice: what a record's frames would have come to otherwise.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::tools {

[[nodiscard]] bool asks_what_if(const cli::Arguments& args);

// Prints the totals beside the recorded ones. Exit status: 0, or 2: no record, or a question that makes no sense of it
// (one line on standard error). Precondition: one thread.
int ask_what_if(const cli::Arguments& args);

}  // namespace leat::tools
