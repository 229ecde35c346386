#include "tools/leat/gateway/kserve/infer_reply.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tools/leat/gateway/kserve/datatypes.h"

namespace leat::gateway {
namespace {

bool same_name(std::string_view whole, const char* cut) {
  return std::strncmp(std::string(whole).c_str(), cut, LEAT_PART_NAME_BYTES - 1) == 0;
}
bool holds_values(std::uint32_t kind) {
  return kind == LEAT_PART_tensor || kind == LEAT_PART_embedding || kind == LEAT_PART_map;
}

// A part's name is cut to fit its place; the model's is whole.
std::string name_of(const FoundOutput& output, const Model& model) {
  if (output.wanted != nullptr) return output.wanted->name;
  for (const Tensor& t : model.outputs)
    if (same_name(t.name, output.part.name)) return t.name;
  return output.part.name;
}

std::uint64_t bytes_of(const leat_part_view& part) { return part.count * leat_dtype_bytes(part.dtype); }

template <class T>
Json numbers(const leat_part_view& part) {
  Json out = Json::array();
  for (std::uint64_t i = 0; i < part.count; ++i) {
    T value{};
    std::memcpy(&value, static_cast<const std::byte*>(part.data) + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      out.push_back(static_cast<std::uint32_t>(value));
    } else {
      out.push_back(value);
    }
  }
  return out;
}

// Null: numbers of that type have no place in JSON here.
Json data_of(const leat_part_view& part) {
  switch (part.dtype) {
    case LEAT_F32:
      return numbers<float>(part);
    case LEAT_F64:
      return numbers<double>(part);
    case LEAT_U8:
    case LEAT_BOOL:
      return numbers<std::uint8_t>(part);
    case LEAT_I8:
      return numbers<std::int8_t>(part);
    case LEAT_U16:
      return numbers<std::uint16_t>(part);
    case LEAT_I16:
      return numbers<std::int16_t>(part);
    case LEAT_U32:
      return numbers<std::uint32_t>(part);
    case LEAT_I32:
      return numbers<std::int32_t>(part);
    case LEAT_U64:
      return numbers<std::uint64_t>(part);
    case LEAT_I64:
      return numbers<std::int64_t>(part);
    default:
      return {};
  }
}

leat_part_view rows_view(const char* name, std::vector<float>& rows, std::uint32_t columns) {
  leat_part_view out{};
  out.data = rows.data();
  out.name = name;
  out.kind = LEAT_PART_tensor;
  out.dtype = LEAT_F32;
  out.rank = 2;
  out.dims[0] = static_cast<std::uint32_t>(rows.size() / columns);
  out.dims[1] = columns;
  out.count = rows.size();
  out.bytes = rows.size() * sizeof(float);
  return out;
}

// Workers write there: counts are cut to what there is room for.
void add_head(const leat_result& result, HeadTensors& head, std::vector<FoundOutput>& out) {
  if (result.kind == LEAT_RESULT_DETECTIONS) {
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i) {
      const leat_detection& d = result.detections[i];
      for (const float value : {d.x0, d.y0, d.x1, d.y1, d.score, static_cast<float>(d.class_id)})
        head.rows.push_back(value);
    }
    out.push_back({.part = rows_view("detections", head.rows, 6)});
  } else if (result.kind == LEAT_RESULT_CLASSES) {
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.class_count, LEAT_MAX_CLASSES); ++i)
      for (const float value : {static_cast<float>(result.classes[i].class_id), result.classes[i].score})
        head.rows.push_back(value);
    out.push_back({.part = rows_view("classes", head.rows, 2)});
  } else if (result.kind == LEAT_RESULT_CHECKSUM) {
    head.checksum = result.checksum;
    leat_part_view view{};
    view.data = &head.checksum;
    view.name = "checksum";
    view.kind = LEAT_PART_tensor;
    view.dtype = LEAT_U64;
    view.rank = 1;
    view.dims[0] = 1;
    view.count = 1;
    view.bytes = sizeof head.checksum;
    out.push_back({.part = view});
  }
}

}  // namespace

Result<std::vector<FoundOutput>> outputs_of(const leat_answer& answer, const InferRequest& request, HeadTensors& head) {
  std::vector<FoundOutput> all, out;
  if (answer.result != nullptr) add_head(*answer.result, head, all);
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(answer.result, answer.result_bytes, &index, &part) != 0;)
    if (holds_values(part.kind)) all.push_back({.part = part});
  if (request.outputs.empty()) return all;
  for (const WantedOutput& wanted : request.outputs) {
    const std::size_t before = out.size();
    for (const FoundOutput& found : all)
      if (out.size() == before && same_name(wanted.name, found.part.name)) out.push_back({found.part, &wanted});
    if (out.size() == before) return Error{"the model gave no output '" + wanted.name + "' this time"};
  }
  return out;
}

Reply infer_reply(const std::vector<FoundOutput>& outputs, const InferRequest& request, const Model& model) {
  Reply out;
  Json list = Json::array();
  for (const FoundOutput& output : outputs) {
    Json shape = Json::array();
    shape.push_back(request.items);
    for (std::uint32_t d = 0; d < output.part.rank; ++d) shape.push_back(output.part.dims[d]);
    Json one = {{"name", name_of(output, model)}, {"datatype", datatype_of(output.part.dtype)}, {"shape", shape}};
    const bool binary = output.wanted != nullptr ? output.wanted->binary : request.binary_outputs;
    Json data;
    if (output.wanted != nullptr && !output.wanted->place.region.empty()) {
      one["parameters"] = {{"shared_memory_region", output.wanted->place.region},
                           {"shared_memory_offset", output.wanted->place.offset},
                           {"shared_memory_byte_size", bytes_of(output.part)}};
    } else if (!binary && !(data = data_of(output.part)).is_null()) {
      one["data"] = std::move(data);
    } else {
      one["parameters"] = Json::object();
      one["parameters"]["binary_data_size"] = bytes_of(output.part);
      out.pieces.push_back({static_cast<const std::byte*>(output.part.data), bytes_of(output.part)});
    }
    list.push_back(std::move(one));
  }
  Json head = {{"model_name", model.name}, {"model_version", model.version}};
  if (!request.id.empty()) head["id"] = request.id;
  head["outputs"] = std::move(list);
  out.body = head.dump();
  if (!out.pieces.empty()) {
    out.type = "application/octet-stream";
    out.fields.emplace_back("Inference-Header-Content-Length", std::to_string(out.body.size()));
  }
  return out;
}

}  // namespace leat::gateway
