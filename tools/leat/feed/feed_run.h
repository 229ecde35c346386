// `leat feed` itself: the cameras, one connection, and what is shown of them until they end.
#pragma once

#include <string_view>

#include "tools/base/cli/command.h"

namespace leat::tools {

// The exit status. program: begins what is said of errors.
int run_feed(const cli::Arguments& args, std::string_view program);

}  // namespace leat::tools
