// What each kind of answer draws, and in which order: first what changes the picture's own pixels (maps, masks), then
// outlines, points and lines with the pen, last the marks that they left. Private to tools/leat/draw.
#pragma once

#include <cstring>
#include <vector>

#include "tools/leat/draw/answer.h"

namespace leat::tools::draw {

struct Work {
  Picture& on;
  const Sheet& sheet;
  View view;
  Style style;
  const AnswerView& answer;
  Marks marks;

  [[nodiscard]] std::string name_of(std::uint32_t head, std::int32_t id) const {  // empty: it has none
    const char* name = answer.name ? answer.name(head, id) : nullptr;
    return name != nullptr ? name : "";
  }
  [[nodiscard]] std::string name_or_number(std::uint32_t head, std::int32_t id) const {
    const std::string name = name_of(head, id);
    return name.empty() ? "class " + std::to_string(id) : name;
  }
  [[nodiscard]] std::uint32_t detections() const noexcept {
    return answer.result->kind == LEAT_RESULT_DETECTIONS
               ? std::min<std::uint32_t>(answer.result->detection_count, LEAT_MAX_DETECTIONS)
               : 0;
  }
};

[[nodiscard]] inline std::vector<leat_part_view> parts_of(const AnswerView& answer) {
  std::vector<leat_part_view> out;
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(answer.result, answer.bytes, &index, &part) != 0;) out.push_back(part);
  return out;
}

template <class T>
[[nodiscard]] T element(const leat_part_view& part, std::uint64_t i) {
  T out;
  std::memcpy(&out, static_cast<const char*>(part.data) + i * sizeof out, sizeof out);
  return out;
}

[[nodiscard]] std::string percent(float score);  // "93%"; empty: no number, or none given

// objects.cpp: detections, boxes, turned boxes, lines of text.
[[nodiscard]] Colour colour_of_detection(const Work& work, const leat_detection& d);
void draw_objects(Work& work, Pen& pen, const std::vector<leat_part_view>& parts);
void draw_points(Work& work, Pen& pen, const leat_part_view& part);  // points.cpp: keypoints, landmarks, segments
void draw_masks(Work& work, const leat_part_view& part);             // masks.cpp
void draw_map(Work& work, const leat_part_view& part);               // maps.cpp: classes, mattes, depth
// classes.cpp: of the picture, of several heads.
void list_classes(Work& work, const std::vector<leat_part_view>& parts);
// numbers.cpp: embeddings, tensors; what the emulated executor answers.
void list_numbers(Work& work, const leat_part_view& part);
void list_checksum(Work& work);

}  // namespace leat::tools::draw
