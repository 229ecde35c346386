// The known models as people and programs read them (engine/exec/recognise/known.h). Control plane; reads files.
#pragma once

#include <string>

#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat::tools {

// [{"name", "what", "preprocess", "postprocess", "sure", "source", "from"?}]. Error: one line, a list that cannot be
// read.
[[nodiscard]] Result<Json> known_list();

// The same as lines: a name, and what such a model finds.
[[nodiscard]] std::string known_table(const Json& list);

}  // namespace leat::tools
