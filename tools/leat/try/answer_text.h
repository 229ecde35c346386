// An answer as a person and as a program reads it. Pure.
#pragma once

#include <string>

#include "leat/leat.h"
#include "tools/base/json/json.h"

namespace leat::tools {

// {"outcome", "reason", "detections": [...], "classes": [...], "parts": [...]}; values of maps, tensors and embeddings
// are summed up (shape, least, most, mean), not listed.
[[nodiscard]] Json answer_json(const leat_answer& answer);

// The same as lines, each beginning with two spaces; what was found in columns.
[[nodiscard]] std::string answer_table(const Json& answer);

}  // namespace leat::tools
