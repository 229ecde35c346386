#include "tools/leat/gateway/kserve/infer_request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "tools/leat/gateway/kserve/datatypes.h"

namespace leat::gateway {
namespace {

constexpr std::int64_t kLongestBudgetUs = 3'600'000'000;

struct Wrong {
  std::string why;
};

std::string shape_text(const Tensor& tensor) {
  std::string out = "[1.." + std::to_string(kMaxItems);
  for (std::uint32_t d = 0; d < tensor.shape.rank; ++d)
    out += tensor.shape.dims[d] == 0 ? ", 1.." + std::to_string(kMaxSide) : ", " + std::to_string(tensor.shape.dims[d]);
  return out + "]";
}

struct GivenShape {
  std::uint64_t bytes = 0;           // all items
  std::uint32_t items = 1;           // in front, or nothing
  std::vector<std::uint32_t> sides;  // those that the client chooses
};
// Nothing: it is another one.
std::optional<GivenShape> given_shape(const Json& shape, const Tensor& tensor) {
  GivenShape out{.bytes = leat_dtype_bytes(tensor.shape.dtype), .sides = {}};
  const std::size_t skip = shape.size() == tensor.shape.rank + 1U ? 1 : 0;
  if (!shape.is_array() || shape.size() != tensor.shape.rank + skip) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_integer()) return std::nullopt;
    const auto said = shape[i].get<std::int64_t>();
    const std::uint32_t want = i < skip ? 0 : tensor.shape.dims[i - skip];
    if (want == 0 ? said < 1 || said > (i < skip ? kMaxItems : kMaxSide) : said != want) return std::nullopt;
    if (i < skip) {
      out.items = static_cast<std::uint32_t>(said);
    } else if (want == 0) {
      out.sides.push_back(static_cast<std::uint32_t>(said));
    }
    out.bytes *= static_cast<std::uint64_t>(said);
  }
  return out;
}

RegionPlace place_of(const Json& parameters) {
  RegionPlace out;
  out.region = parameters.value("shared_memory_region", "");
  if (out.region.empty()) return out;
  out.offset = parameters.value("shared_memory_offset", std::uint64_t{0});
  out.bytes = parameters.value("shared_memory_byte_size", std::uint64_t{0});
  return out;
}

const Json& parameters_of(const Json& json) {
  static const Json kNone = Json::object();
  const Json* const found = json.find("parameters");
  return found != nullptr && found->is_object() ? *found : kNone;
}

GivenInput input_of(const Json& json, std::size_t at, const Model& model, std::uint64_t* binary_left,
                    InferRequest& request) {
  const std::string name = json.at("name").get<std::string>();
  GivenInput out{.at = at, .place = {}};
  while (out.input < model.inputs.size() && model.inputs[out.input].name != name) ++out.input;
  if (out.input == model.inputs.size()) throw Wrong{"model '" + model.name + "' has no input '" + name + "'"};
  const Tensor& tensor = model.inputs[out.input];
  const std::string datatype = json.at("datatype").get<std::string>();
  const auto given = given_shape(json.at("shape"), tensor);
  if (dtype_of_datatype(datatype) != tensor.shape.dtype || !given)
    throw Wrong{"input '" + name + "' is " + std::string(datatype_of(tensor.shape.dtype)) + " " + shape_text(tensor) +
                " here, not " + datatype + " " + json.at("shape").dump()};
  if (request.items != 0 && request.items != given->items)
    throw Wrong{"input '" + name + "' has " + std::to_string(given->items) + " items, another input " +
                std::to_string(request.items)};
  request.items = given->items;
  const std::uint64_t bytes = request.bytes[out.input] = given->bytes;
  if (given->sides.size() == 2) request.height = given->sides[0], request.width = given->sides[1];
  const Json& parameters = parameters_of(json);
  out.place = place_of(parameters);
  const Json* const size = parameters.find("binary_data_size");
  out.binary = size != nullptr;
  const std::string needs = "input '" + name + "' takes " + std::to_string(bytes) + " bytes";
  if (out.binary) {
    if (json.contains("data") || !out.place.region.empty()) throw Wrong{"input '" + name + "' comes twice"};
    if (size->get<std::uint64_t>() != bytes) throw Wrong{needs + ", not " + size->dump()};
    if (bytes > *binary_left) throw Wrong{needs + "; the body ends before"};
    *binary_left -= bytes;
  } else if (!out.place.region.empty()) {
    if (json.contains("data")) throw Wrong{"input '" + name + "' comes twice"};
    if (out.place.bytes != bytes) throw Wrong{needs + ", not " + std::to_string(out.place.bytes)};
  } else if (!json.contains("data")) {
    throw Wrong{"input '" + name + "' has neither data nor binary_data_size"};
  }
  return out;
}

WantedOutput output_of(const Json& json, const Model& model, bool binary) {
  WantedOutput out{.name = json.at("name").get<std::string>(), .place = {}};
  if (std::none_of(model.outputs.begin(), model.outputs.end(), [&](const Tensor& t) { return t.name == out.name; }))
    throw Wrong{"model '" + model.name + "' has no output '" + out.name + "'"};
  const Json& parameters = parameters_of(json);
  if (parameters.contains("classification"))
    throw Wrong{"outputs are given as they are; leave out the parameter 'classification'"};
  out.binary = parameters.value("binary_data", binary);
  out.place = place_of(parameters);
  return out;
}

void read(const Json& head, const Model& model, std::uint64_t binary_bytes, InferRequest& out) {
  out.id = head.value("id", "");
  if (out.id.size() > 256) throw Wrong{"an id has at most 256 bytes"};
  const Json& parameters = parameters_of(head);
  if (parameters.contains("sequence_id")) throw Wrong{"sequences are not served; send each request by itself"};
  const auto timeout_us = parameters.value("timeout", std::int64_t{0});
  if (timeout_us < 0 || timeout_us > kLongestBudgetUs) throw Wrong{"timeout is no time in microseconds"};
  out.budget_ns = timeout_us * 1000;
  out.priority = priority_of_number(parameters.value("priority", std::uint64_t{0}));
  out.binary_outputs = parameters.value("binary_data_output", false);
  const Json& inputs = head.at("inputs");
  if (!inputs.is_array() || inputs.size() != model.inputs.size())
    throw Wrong{"model '" + model.name + "' takes " + std::to_string(model.inputs.size()) + " inputs"};
  out.bytes.resize(model.inputs.size());
  std::uint64_t left = binary_bytes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    out.inputs.push_back(input_of(inputs[i], i, model, &left, out));
    for (std::size_t j = 0; j < i; ++j)
      if (out.inputs[j].input == out.inputs[i].input) throw Wrong{"an input comes twice"};
  }
  out.items = std::max(out.items, 1U);
  if (left != 0) throw Wrong{std::to_string(left) + " bytes of the body belong to no input"};
  const Json* const outputs = head.find("outputs");
  if (outputs == nullptr) return;
  if (!outputs->is_array() || outputs->size() > model.outputs.size()) throw Wrong{"outputs is no list of outputs"};
  for (const Json& one : *outputs) out.outputs.push_back(output_of(one, model, out.binary_outputs));
}

// Depth first, row by row.
template <class T>
void put_numbers(const Json& data, std::byte* to, std::uint64_t count, std::uint64_t* at) {
  if (data.is_array()) {
    for (const Json& one : data) put_numbers<T>(one, to, count, at);
    return;
  }
  if (*at >= count) throw Wrong{"more numbers than the shape holds"};
  T value{};
  if constexpr (std::is_same_v<T, bool>) {
    value = data.is_boolean() ? data.get<bool>() : data.get<std::int64_t>() != 0;
  } else {
    value = data.get<T>();
  }
  std::memcpy(to + *at * sizeof(T), &value, sizeof(T));
  ++*at;
}

}  // namespace

Result<InferRequest> infer_request_of(std::string_view json, const Model& model, std::uint64_t binary_bytes) try {
  InferRequest out;
  out.head = Json::parse(json);
  if (!out.head.is_object()) return Error{"the request's head is no JSON object"};
  read(out.head, model, binary_bytes, out);
  return out;
} catch (const Wrong& wrong) {
  return Error{wrong.why};
} catch (const JsonError& error) {
  return Error{std::string("the request's head cannot be read: ") + error.what()};
}

std::string write_json_tensor(const Json& data, const Tensor& tensor, std::span<std::byte> to) try {
  const std::uint64_t count = to.size() / leat_dtype_bytes(tensor.shape.dtype);
  std::uint64_t at = 0;
  const auto put = [&](auto zero) { put_numbers<decltype(zero)>(data, to.data(), count, &at); };
  switch (tensor.shape.dtype) {
    case LEAT_F32:
      put(float{});
      break;
    case LEAT_F64:
      put(double{});
      break;
    case LEAT_U8:
      put(std::uint8_t{});
      break;
    case LEAT_I8:
      put(std::int8_t{});
      break;
    case LEAT_U16:
      put(std::uint16_t{});
      break;
    case LEAT_I16:
      put(std::int16_t{});
      break;
    case LEAT_U32:
      put(std::uint32_t{});
      break;
    case LEAT_I32:
      put(std::int32_t{});
      break;
    case LEAT_U64:
      put(std::uint64_t{});
      break;
    case LEAT_I64:
      put(std::int64_t{});
      break;
    case LEAT_BOOL:
      put(bool{});
      break;
    default:
      return "input '" + tensor.name + "' can only be sent as binary data";
  }
  if (at != count)
    return "input '" + tensor.name + "' has " + std::to_string(at) + " numbers, not " + std::to_string(count);
  return {};
} catch (const Wrong& wrong) {
  return "input '" + tensor.name + "': " + wrong.why;
} catch (const JsonError& error) {
  return "input '" + tensor.name + "': " + error.what();
}

std::uint32_t priority_of_number(std::uint64_t number) noexcept {
  if (number == 1) return LEAT_PRIORITY_HIGH;
  return number <= 2 ? LEAT_PRIORITY_NORMAL : LEAT_PRIORITY_BACKGROUND;
}

}  // namespace leat::gateway
