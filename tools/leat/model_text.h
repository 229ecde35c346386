// What a module serves with, as `leat check` and `leat status` print it below the module's line. Pure.
#pragma once

#include <string>

#include "tools/base/json/json.h"

namespace leat::tools {

// Lines of "preprocess", "postprocess" and "labels" of a module's JSON; none where it has no such thing.
[[nodiscard]] std::string model_text(const Json& module);

}  // namespace leat::tools
