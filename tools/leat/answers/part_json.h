// One part of a result as JSON: what its kind says, in pixels of the frame. Pure; any thread.
#pragma once

#include <cstdint>

#include "leat/leat.h"
#include "leat/result_parts.h"
#include "tools/base/json/json.h"
#include "tools/leat/answers/answer_json.h"

namespace leat::tools {

// The names of an application's classes; a class without one is its number.
class ClassNames {
 public:
  explicit ClassNames(const leat_stream* stream) : stream_(stream) {}  // null: no class has a name
  [[nodiscard]] Json of(std::uint32_t head, std::int32_t class_id) const {
    const char* const name = stream_ != nullptr ? leat_class_name(stream_, head, class_id) : nullptr;
    return name != nullptr ? Json(name) : Json(class_id);
  }

 private:
  const leat_stream* stream_;
};

[[nodiscard]] Json scored_json(const ClassNames& names, std::uint32_t head, std::int32_t class_id, float score);
[[nodiscard]] Json box_json(float x0, float y0, float x1, float y1);  // tenths of a pixel
[[nodiscard]] Json part_json(const ClassNames& names, const leat_part_view& part, const AnswerDetail& detail);

}  // namespace leat::tools
