// An answer as JSON: docs/reference/answers.md says what stands in it, docs/reference/answer.schema.json what may.
// Pure; the answer must not have been released. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "leat/leat.h"
#include "tools/base/json/json.h"

namespace leat::tools {

struct AnswerDetail {
  std::size_t max_values = 64;  // of tensors, maps and embeddings: more than that are summed up, not listed
  bool mask_runs = false;       // which pixels of a mask are set, too
};

// {"outcome", "reason", "damaged", "detections": [...], "classes": [...], "parts": [...]}
[[nodiscard]] Json answer_json(const leat_answer& answer, const AnswerDetail& detail = {});

}  // namespace leat::tools
