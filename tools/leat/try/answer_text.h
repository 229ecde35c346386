// An answer as a person and as a program reads it. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "leat/leat.h"

namespace leat::tools {

// {"outcome", "reason", "detections": [...], "classes": [...], "parts": [...]}; values of maps, tensors and embeddings
// are summed up (shape, least, most, mean), not listed.
[[nodiscard]] nlohmann::ordered_json answer_json(const leat_answer& answer);

// The same as lines, each beginning with two spaces; what was found in columns.
[[nodiscard]] std::string answer_table(const nlohmann::ordered_json& answer);

}  // namespace leat::tools
