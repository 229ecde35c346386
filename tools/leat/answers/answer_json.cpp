#include "tools/leat/answers/answer_json.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>

#include "leat/outcome.h"
#include "leat/result_parts.h"
#include "tools/leat/answers/part_json.h"

namespace leat::tools {
namespace {

Json detection_json(const ClassNames& names, const leat_detection& d) {
  Json json = scored_json(names, 0, d.class_id, d.score);
  json["box"] = box_json(d.x0, d.y0, d.x1, d.y1);
  for (std::uint32_t l = 0; l < std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS); ++l) {
    Json label = scored_json(names, 1 + d.labels[l].head, d.labels[l].class_id, d.labels[l].score);
    label["head"] = d.labels[l].head;
    json["labels"].push_back(std::move(label));
  }
  return json;
}

// 64 bits are more than many readers of JSON take for a number.
Json version_json(std::uint64_t version) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, version);
  return text;
}

void add_result(Json& json, const leat_answer& answer, const AnswerDetail& detail) {
  const leat_result& result = *answer.result;
  const ClassNames names(answer.stream);
  if (result.model_version != 0) json["model_version"] = version_json(result.model_version);
  if ((result.flags & LEAT_RESULT_NOT_FINITE) != 0) json["not_finite"] = true;
  if (result.kind == LEAT_RESULT_DETECTIONS) {
    json["detections"] = Json::array();
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i)
      json["detections"].push_back(detection_json(names, result.detections[i]));
    if (result.detections_left_out > 0) json["left_out"] = result.detections_left_out;
  }
  if (result.kind == LEAT_RESULT_CLASSES)
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.class_count, LEAT_MAX_CLASSES); ++i)
      json["classes"].push_back(scored_json(names, 0, result.classes[i].class_id, result.classes[i].score));
  if (result.kind == LEAT_RESULT_CHECKSUM) json["checksum"] = version_json(result.checksum);
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(&result, answer.result_bytes, &index, &part) != 0;)
    json["parts"].push_back(part_json(names, part, detail));
}

}  // namespace

Json answer_json(const leat_answer& answer, const AnswerDetail& detail) {
  Json json = {{"outcome", std::string(leat::name_of(static_cast<Outcome>(answer.outcome)))}};
  if (answer.reason != 0) {
    const auto reason = static_cast<Reason>(answer.reason);
    json["reason"] = std::string(leat::name_of(reason));
    json["reason_text"] = std::string(text_of(reason));
  }
  if ((answer.flags & LEAT_ANSWER_DAMAGED) != 0) json["damaged"] = true;
  if (answer.result != nullptr) add_result(json, answer, detail);
  return json;
}

}  // namespace leat::tools
