// What `leat top --once` prints: the figures of one window, as text, JSON or a picture.
#pragma once

#include "tools/base/cli/json_output.h"
#include "tools/leat/top/sample.h"

namespace leat::tools {

// The exit status. The window is of `delay` seconds from now.
int top_once(Watch& watch, double delay, const cli::JsonOutput& json, bool picture);

}  // namespace leat::tools
