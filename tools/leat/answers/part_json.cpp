#include "tools/leat/answers/part_json.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

// To so many steps a unit: dividing by a whole number gives the shortest decimal, multiplying by a tenth does not.
double rounded(float value, double steps) { return std::round(static_cast<double>(value) * steps) / steps; }
double pixel(float value) { return rounded(value, 10); }
double score_of(float value) { return rounded(value, 1e4); }

template <class T>
std::vector<T> elements(const leat_part_view& part) {
  std::vector<T> out(part.count);
  if (part.count != 0) std::memcpy(out.data(), part.data, part.count * sizeof(T));
  return out;
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

const char* name_of_type(std::uint32_t dtype) {
  static constexpr const char* kTypes[] = {
#define X(name, value, bytes, text) text,
      LEAT_DTYPES(X)
#undef X
  };
  return dtype < std::size(kTypes) ? kTypes[dtype] : "unknown";
}

// ---- by kind ----

void add_boxes(Json& json, const ClassNames& names, const leat_part_view& part) {
  json["boxes"] = Json::array();
  for (const leat_box& b : elements<leat_box>(part)) {
    json["boxes"].push_back(scored_json(names, 0, b.class_id, b.score));
    json["boxes"].back()["box"] = box_json(b.x0, b.y0, b.x1, b.y1);
  }
}

void add_oriented(Json& json, const ClassNames& names, const leat_part_view& part) {
  json["boxes"] = Json::array();
  for (const leat_oriented_box& b : elements<leat_oriented_box>(part)) {
    Json box = scored_json(names, 0, b.class_id, b.score);
    box["centre"] = {pixel(b.cx), pixel(b.cy)};
    box["size"] = {pixel(b.width), pixel(b.height)};
    box["angle"] = rounded(b.angle, 1e4);
    json["boxes"].push_back(std::move(box));
  }
}

void add_keypoints(Json& json, const leat_part_view& part) {
  json["points_each"] = part.rank > 1 ? part.dims[1] : 1;
  json["points"] = Json::array();
  for (const leat_keypoint& k : elements<leat_keypoint>(part))
    json["points"].push_back({pixel(k.x), pixel(k.y), score_of(k.score)});
}

// How many pixels are clear, then how many are set, and so on, row by row.
Json runs_of(const leat_mask& mask, const std::uint8_t* bits) {
  std::vector<std::uint32_t> runs = {0};
  bool set = false;
  const std::size_t row_bytes = (mask.width + 7) / 8;
  for (std::uint32_t y = 0; y < mask.height; ++y) {
    for (std::uint32_t x = 0; x < mask.width; ++x) {
      const bool now = (bits[y * row_bytes + x / 8] >> x % 8 & 1) != 0;
      if (now != set) runs.push_back(0);
      set = now;
      ++runs.back();
    }
  }
  return runs;
}

void add_masks(Json& json, const leat_part_view& part, const AnswerDetail& detail) {
  json["masks"] = Json::array();
  for (std::uint32_t i = 0; i < part.count; ++i) {
    leat_mask mask;
    const std::uint8_t* const bits = leat_mask_at(&part, i, &mask);
    if (bits == nullptr) continue;
    Json one = {{"box", box_json(mask.x0, mask.y0, mask.x1, mask.y1)}};
    one["grid"] = std::vector<std::uint32_t>{mask.width, mask.height};
    if (detail.mask_runs) one["runs"] = runs_of(mask, bits);
    json["masks"].push_back(std::move(one));
  }
}

void add_text(Json& json, const leat_part_view& part) {
  json["lines"] = Json::array();
  for (std::uint32_t i = 0; i < part.count; ++i) {
    leat_text line;
    const char* const text = leat_text_at(&part, i, &line);
    if (text == nullptr) continue;
    Json quad = Json::array();
    for (const float v : line.quad) quad.push_back(pixel(v));
    json["lines"].push_back(
        {{"text", std::string(text, line.length)}, {"score", score_of(line.score)}, {"quad", std::move(quad)}});
  }
}

void add_classes(Json& json, const ClassNames& names, const leat_part_view& part) {
  json["classes"] = Json::array();
  const std::uint32_t each = std::max(part.rank > 1 ? part.dims[1] : 1, 1U);  // a head's classes stand together
  std::uint32_t at = 0;
  for (const leat_class& c : elements<leat_class>(part)) {
    const std::uint32_t head = at++ / each;
    if (c.score <= 0) continue;
    Json one = {{"head", head}};
    one.update(scored_json(names, head, c.class_id, c.score));
    json["classes"].push_back(std::move(one));
  }
}

// What a person asks first of a tensor is whether it is all zeros, or no numbers at all.
template <class T>
void add_numbers_of(Json& json, const std::vector<T>& values, const AnswerDetail& detail) {
  double sum = 0;
  for (const T v : values) sum += static_cast<double>(v);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  json["min"] = *low, json["max"] = *high, json["mean"] = sum / static_cast<double>(values.size());
  if (values.size() <= detail.max_values) json["values"] = values;
}

std::vector<float> halves(const leat_part_view& part) {
  const auto values = elements<_Float16>(part);
  return {values.begin(), values.end()};
}

void add_numbers(Json& json, const leat_part_view& part, const AnswerDetail& detail) {
  json["shape"] = std::vector<std::uint32_t>(part.dims, part.dims + part.rank);
  json["type"] = name_of_type(part.dtype);
  if (part.count == 0) return;
  switch (part.dtype) {
    case LEAT_F32:
      return add_numbers_of(json, elements<float>(part), detail);
    case LEAT_F16:
      return add_numbers_of(json, halves(part), detail);
    case LEAT_F64:
      return add_numbers_of(json, elements<double>(part), detail);
    case LEAT_U8:
      return add_numbers_of(json, elements<std::uint8_t>(part), detail);
    case LEAT_I32:
      return add_numbers_of(json, elements<std::int32_t>(part), detail);
    case LEAT_I64:
      return add_numbers_of(json, elements<std::int64_t>(part), detail);
    default:
      return;
  }
}

}  // namespace

Json scored_json(const ClassNames& names, std::uint32_t head, std::int32_t class_id, float score) {
  return {{"class", names.of(head, class_id)}, {"score", score_of(score)}};
}

Json box_json(float x0, float y0, float x1, float y1) { return {pixel(x0), pixel(y0), pixel(x1), pixel(y1)}; }

Json part_json(const ClassNames& names, const leat_part_view& part, const AnswerDetail& detail) {
  Json json = {{"kind", name_of_kind(part.kind)}, {"name", part.name}};
  if (part.item == LEAT_ITEM_EACH) json["each"] = true;
  switch (part.kind) {
    case LEAT_PART_boxes:
      add_boxes(json, names, part);
      break;
    case LEAT_PART_oriented:
      add_oriented(json, names, part);
      break;
    case LEAT_PART_keypoints:
      add_keypoints(json, part);
      break;
    case LEAT_PART_masks:
      add_masks(json, part, detail);
      break;
    case LEAT_PART_text:
      add_text(json, part);
      break;
    case LEAT_PART_classes:
      add_classes(json, names, part);
      break;
    default:
      add_numbers(json, part, detail);
  }
  return json;
}

}  // namespace leat::tools
