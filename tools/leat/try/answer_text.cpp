#include "tools/leat/try/answer_text.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

#include "leat/outcome.h"
#include "leat/result_parts.h"
#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

// To so many steps a unit: dividing by a whole number gives the shortest decimal, multiplying by a tenth does not.
double rounded(float value, double steps) { return std::round(static_cast<double>(value) * steps) / steps; }

Json name_of(const leat_stream* stream, std::uint32_t head, std::int32_t class_id) {
  const char* name = leat_class_name(stream, head, class_id);
  return name != nullptr ? Json(name) : Json(class_id);
}

Json detection_json(const leat_stream* stream, const leat_detection& d) {
  Json json = {{"class", name_of(stream, 0, d.class_id)},
               {"score", rounded(d.score, 1e4)},
               {"box", {rounded(d.x0, 10), rounded(d.y0, 10), rounded(d.x1, 10), rounded(d.y1, 10)}}};
  for (std::uint32_t l = 0; l < std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS); ++l)
    json["labels"].push_back({{"class", name_of(stream, 1 + d.labels[l].head, d.labels[l].class_id)},
                              {"score", rounded(d.labels[l].score, 1e4)}});
  return json;
}

const char* name_of_kind(std::uint32_t kind) {
  switch (kind) {
#define X(name, value, text) \
  case value:                \
    return #name;
    LEAT_PART_KINDS(X)
#undef X
    default:
      return "unknown";
  }
}

template <class T>
std::vector<T> elements(const leat_part_view& part) {
  std::vector<T> out(part.count);
  std::memcpy(out.data(), part.data, part.count * sizeof(T));
  return out;
}

Json box_json(float x0, float y0, float x1, float y1) {
  return {rounded(x0, 10), rounded(y0, 10), rounded(x1, 10), rounded(y1, 10)};
}

// Numbers are summed up: what a person asks first of a tensor is whether it is all zeros, or no numbers at all.
template <class T>
void sum_up_as(const leat_part_view& part, Json& json) {
  const auto values = elements<T>(part);
  double sum = 0;
  for (const T v : values) sum += static_cast<double>(v);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  json["least"] = *least, json["most"] = *most, json["mean"] = sum / static_cast<double>(values.size());
}
void sum_up(const leat_part_view& part, Json& json) {
  if (part.count == 0) return;
  if (part.dtype == LEAT_F32) sum_up_as<float>(part, json);
  if (part.dtype == LEAT_U8) sum_up_as<std::uint8_t>(part, json);
}

Json part_json(const leat_stream* stream, const leat_part_view& part) {
  Json json = {{"kind", name_of_kind(part.kind)}, {"name", part.name}};
  switch (part.kind) {
    case LEAT_PART_boxes:
      for (const leat_box& b : elements<leat_box>(part))
        json["boxes"].push_back({{"class", name_of(stream, 0, b.class_id)},
                                 {"score", rounded(b.score, 1e4)},
                                 {"box", box_json(b.x0, b.y0, b.x1, b.y1)}});
      break;
    case LEAT_PART_oriented:
      for (const leat_oriented_box& b : elements<leat_oriented_box>(part))
        json["boxes"].push_back({{"class", name_of(stream, 0, b.class_id)},
                                 {"score", rounded(b.score, 1e4)},
                                 {"centre", {rounded(b.cx, 10), rounded(b.cy, 10)}},
                                 {"size", {rounded(b.width, 10), rounded(b.height, 10)}},
                                 {"angle", rounded(b.angle, 1e4)}});
      break;
    case LEAT_PART_keypoints:
      for (const leat_keypoint& k : elements<leat_keypoint>(part))
        json["points"].push_back({rounded(k.x, 10), rounded(k.y, 10), rounded(k.score, 1e4)});
      json["points_each"] = part.rank > 1 ? part.dims[1] : 1;
      break;
    case LEAT_PART_masks:
      for (std::uint32_t i = 0; i < part.count; ++i) {
        leat_mask mask;
        if (leat_mask_at(&part, i, &mask) != nullptr)
          json["masks"].push_back(
              {{"box", box_json(mask.x0, mask.y0, mask.x1, mask.y1)}, {"grid", {mask.width, mask.height}}});
      }
      break;
    case LEAT_PART_text:
      for (std::uint32_t i = 0; i < part.count; ++i) {
        leat_text line;
        const char* text = leat_text_at(&part, i, &line);
        if (text == nullptr) continue;
        Json quad = Json::array();
        for (const float v : line.quad) quad.push_back(rounded(v, 10));
        json["lines"].push_back(
            {{"text", std::string(text, line.length)}, {"score", rounded(line.score, 1e4)}, {"quad", std::move(quad)}});
      }
      break;
    case LEAT_PART_classes: {
      std::uint32_t at = 0;  // a head's classes stand together
      for (const leat_class& c : elements<leat_class>(part)) {
        const std::uint32_t head = at++ / std::max(part.rank > 1 ? part.dims[1] : 1, 1U);
        if (c.score > 0)
          json["classes"].push_back(
              {{"head", head}, {"class", name_of(stream, head, c.class_id)}, {"score", rounded(c.score, 1e4)}});
      }
      break;
    }
    default: {
      json["shape"] = std::vector<std::uint32_t>(part.dims, part.dims + part.rank);
      static constexpr const char* kTypes[] = {
#define X(name, value, bytes, text) text,
          LEAT_DTYPES(X)
#undef X
      };
      json["type"] = part.dtype < std::size(kTypes) ? kTypes[part.dtype] : "unknown";
      sum_up(part, json);
    }
  }
  return json;
}

std::string word(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

Json answer_json(const leat_answer& answer) {
  Json json = {{"outcome", std::string(leat::name_of(static_cast<Outcome>(answer.outcome)))}};
  if (answer.reason != 0) {
    const auto reason = static_cast<Reason>(answer.reason);
    json["reason"] = std::string(leat::name_of(reason));
    json["reason_text"] = std::string(text_of(reason));
  }
  if (answer.result == nullptr) return json;
  const leat_result& result = *answer.result;
  if (result.model_version != 0) {  // 64 bits are more than many readers of JSON take for a number
    char version[17];
    std::snprintf(version, sizeof version, "%016" PRIx64, result.model_version);
    json["model_version"] = version;
  }
  if (result.kind == LEAT_RESULT_DETECTIONS) {
    json["detections"] = Json::array();
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i)
      json["detections"].push_back(detection_json(answer.stream, result.detections[i]));
    if (result.detections_left_out > 0) json["left_out"] = result.detections_left_out;
  }
  if (result.kind == LEAT_RESULT_CLASSES)
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.class_count, LEAT_MAX_CLASSES); ++i)
      json["classes"].push_back({{"class", name_of(answer.stream, 0, result.classes[i].class_id)},
                                 {"score", rounded(result.classes[i].score, 1e4)}});
  if (result.kind == LEAT_RESULT_CHECKSUM) json["checksum"] = result.checksum;
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(&result, answer.result_bytes, &index, &part) != 0;)
    json["parts"].push_back(part_json(answer.stream, part));
  return json;
}

std::string answer_table(const Json& answer) {
  std::string out;
  char line[256];
  if (answer.contains("reason"))
    out += "  " + word(answer["outcome"]) + " (" + word(answer["reason"]) + "): " + word(answer["reason_text"]) + "\n";
  if (answer.contains("detections")) {
    if (answer["detections"].empty()) out += "  nothing was found\n";
    for (const Json& d : answer["detections"]) {
      std::snprintf(line, sizeof line, "  %-20s %5.1f %%  %7.1f %7.1f %7.1f %7.1f", word(d["class"]).c_str(),
                    100 * d["score"].get<double>(), d["box"][0].get<double>(), d["box"][1].get<double>(),
                    d["box"][2].get<double>(), d["box"][3].get<double>());
      out += line;
      for (const Json& label : d.value("labels", Json::array())) out += "  " + word(label["class"]);
      out += "\n";
    }
    if (answer.contains("left_out")) out += "  and " + answer["left_out"].dump() + " more than a result holds\n";
  }
  for (const Json& c : answer.value("classes", Json::array())) {
    std::snprintf(line, sizeof line, "  %-32s %5.1f %%\n", word(c["class"]).c_str(), 100 * c["score"].get<double>());
    out += line;
  }
  for (const Json& part : answer.value("parts", Json::array())) {
    out += "  " + word(part["kind"]) + " " + word(part["name"]);
    if (part.contains("shape")) out += " " + part["shape"].dump() + " " + word(part["type"]);
    if (part.contains("mean")) {
      std::snprintf(line, sizeof line, ", %g to %g, mean %g", part["least"].get<double>(), part["most"].get<double>(),
                    part["mean"].get<double>());
      out += line;
    }
    out += "\n";
    for (const char* list : {"lines", "boxes", "classes", "masks", "points"})
      for (const Json& row : part.value(list, Json::array()))
        out += "    " + (row.is_object() && row.contains("text") ? word(row["text"]) : row.dump()) + "\n";
  }
  if (answer.contains("checksum")) out += "  checksum " + answer["checksum"].dump() + "\n";
  return out;
}

}  // namespace leat::tools
