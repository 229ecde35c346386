#include "tools/grpc/translate.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kserve.pb.h"
#include "tools/base/json/json.h"

namespace leat::grpc_door {
namespace {

struct Wrong {
  std::string why;
};

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
constexpr const char* kRegion = "shared_memory_region";

Json json_of(const inference::InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return value.bool_param();
    case inference::InferParameter::kInt64Param:
      return value.int64_param();
    case inference::InferParameter::kStringParam:
      return value.string_param();
    case inference::InferParameter::kDoubleParam:
      return value.double_param();
    case inference::InferParameter::kUint64Param:
      return value.uint64_param();
    default:
      return {};
  }
}

Json json_of(const Parameters& parameters) {
  Json out = Json::object();
  for (const auto& [name, value] : parameters) out[name] = json_of(value);
  return out;
}

inference::InferParameter parameter_of(const Json& value) {
  inference::InferParameter out;
  if (value.is_boolean()) {
    out.set_bool_param(value.get<bool>());
  } else if (value.is_integer()) {
    out.set_int64_param(value.get<std::int64_t>());
  } else if (value.is_number()) {
    out.set_double_param(value.get<double>());
  } else if (value.is_string()) {
    out.set_string_param(value.get<std::string>());
  }
  return out;
}

// The numbers as the bytes that a T takes.
template <class T, class List>
std::string bytes_of(const List& numbers, const std::string& name) {
  std::string out(static_cast<std::size_t>(numbers.size()) * sizeof(T), '\0');
  std::size_t at = 0;
  for (const auto number : numbers) {
    const T value = static_cast<T>(number);
    if constexpr (std::numeric_limits<T>::is_integer)
      if (static_cast<decltype(number)>(value) != number)
        throw Wrong{"input '" + name + "' has a number that its datatype does not hold: " + std::to_string(number)};
    std::memcpy(out.data() + at, &value, sizeof value);
    at += sizeof value;
  }
  return out;
}

std::string bytes_of(const inference::ModelInferRequest::InferInputTensor& input) {
  const auto& given = input.contents();
  const std::string& type = input.datatype();
  const std::string& name = input.name();
  if (type == "BOOL") return bytes_of<std::uint8_t>(given.bool_contents(), name);
  if (type == "INT8") return bytes_of<std::int8_t>(given.int_contents(), name);
  if (type == "INT16") return bytes_of<std::int16_t>(given.int_contents(), name);
  if (type == "INT32") return bytes_of<std::int32_t>(given.int_contents(), name);
  if (type == "INT64") return bytes_of<std::int64_t>(given.int64_contents(), name);
  if (type == "UINT8") return bytes_of<std::uint8_t>(given.uint_contents(), name);
  if (type == "UINT16") return bytes_of<std::uint16_t>(given.uint_contents(), name);
  if (type == "UINT32") return bytes_of<std::uint32_t>(given.uint_contents(), name);
  if (type == "UINT64") return bytes_of<std::uint64_t>(given.uint64_contents(), name);
  if (type == "FP32") return bytes_of<float>(given.fp32_contents(), name);
  if (type == "FP64") return bytes_of<double>(given.fp64_contents(), name);
  throw Wrong{"input '" + name + "' is " + type + ", which can only be sent in raw_input_contents"};
}

Json shape_of(const google::protobuf::RepeatedField<std::int64_t>& shape) {
  Json out = Json::array();
  for (const std::int64_t side : shape) out.push_back(side);
  return out;
}

void add_inputs(const inference::ModelInferRequest& asked, Json& head, InferPassed& out) {
  int raw = 0;
  Json inputs = Json::array();
  for (const auto& input : asked.inputs()) {
    Json one = {{"name", input.name()}, {"datatype", input.datatype()}, {"shape", shape_of(input.shape())}};
    one["parameters"] = json_of(input.parameters());
    if (!input.parameters().contains(kRegion)) {
      std::string_view bytes;
      if (asked.raw_input_contents_size() != 0) {
        if (input.has_contents()) throw Wrong{"input '" + input.name() + "' comes twice"};
        if (raw == asked.raw_input_contents_size())
          throw Wrong{"input '" + input.name() + "' has no entry in raw_input_contents"};
        bytes = asked.raw_input_contents(raw++);
      } else {
        bytes = out.converted.emplace_back(bytes_of(input));
      }
      one["parameters"]["binary_data_size"] = bytes.size();
      out.request.body.push_back(bytes);
    }
    inputs.push_back(std::move(one));
  }
  if (raw != asked.raw_input_contents_size()) throw Wrong{"raw_input_contents has entries that belong to no input"};
  head["inputs"] = std::move(inputs);
}

void add_outputs(const inference::ModelInferRequest& asked, Json& head) {
  if (asked.outputs_size() == 0) return;
  Json outputs = Json::array();
  for (const auto& output : asked.outputs()) {
    Json one = {{"name", output.name()}};
    one["parameters"] = json_of(output.parameters());
    if (!output.parameters().contains(kRegion)) one["parameters"]["binary_data"] = true;
    outputs.push_back(std::move(one));
  }
  head["outputs"] = std::move(outputs);
}

void fill(const Json& head, std::string_view binary, inference::ModelInferResponse& to) {
  to.set_model_name(head.value("model_name", ""));
  to.set_model_version(head.value("model_version", ""));
  to.set_id(head.value("id", ""));
  for (const Json& output : head.at("outputs")) {
    auto& one = *to.add_outputs();
    one.set_name(output.at("name").get<std::string>());
    one.set_datatype(output.at("datatype").get<std::string>());
    for (const Json& side : output.at("shape")) one.add_shape(side.get<std::int64_t>());
    std::string& raw = *to.add_raw_output_contents();
    const Json* const parameters = output.find("parameters");
    if (parameters == nullptr) continue;
    for (const auto& [name, value] : parameters->items()) {
      if (name != "binary_data_size") {
        (*one.mutable_parameters())[name] = parameter_of(value);
        continue;
      }
      const auto bytes = value.get<std::size_t>();
      if (bytes > binary.size()) throw Wrong{"its answer ends before its outputs do"};
      raw = binary.substr(0, bytes);
      binary.remove_prefix(bytes);
    }
  }
}

}  // namespace

std::string path_word(const std::string& text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::strchr("-._~", c) != nullptr) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string model_path(const std::string& name, const std::string& version) {
  return "/v2/models/" + path_word(name) + (version.empty() ? "" : "/versions/" + path_word(version));
}

bool names_shared_memory(const inference::ModelInferRequest& asked) {
  const auto named = [](const auto& tensor) { return tensor.parameters().contains(kRegion); };
  return std::any_of(asked.inputs().begin(), asked.inputs().end(), named) ||
         std::any_of(asked.outputs().begin(), asked.outputs().end(), named);
}

Result<InferPassed> passed_of(const inference::ModelInferRequest& asked) try {
  if (asked.model_name().empty()) return Error{"model_name is empty; name an application of leatd's"};
  InferPassed out;
  Json head = Json::object();
  if (!asked.id().empty()) head["id"] = asked.id();
  head["parameters"] = json_of(asked.parameters());
  head["parameters"]["binary_data_output"] = true;
  add_inputs(asked, head, out);
  add_outputs(asked, head);
  out.head = head.dump();
  out.request.method = "POST";
  out.request.path = model_path(asked.model_name(), asked.model_version()) + "/infer";
  out.request.fields.emplace_back("Inference-Header-Content-Length", std::to_string(out.head.size()));
  return out;
} catch (const Wrong& wrong) {
  return Error{wrong.why};
}

std::string fill_response(const HttpAnswer& answer, inference::ModelInferResponse& to) try {
  const std::string_view said = answer.field("inference-header-content-length");
  const std::string_view body = answer.body;
  const std::size_t head =
      said.empty() ? body.size() : std::min<std::size_t>(body.size(), std::stoull(std::string(said)));
  fill(Json::parse(body.substr(0, head)), body.substr(head), to);
  return {};
} catch (const Wrong& wrong) {
  return wrong.why;
} catch (const std::exception& error) {  // what is no JSON, or no number
  return std::string("its answer cannot be read: ") + error.what();
}

}  // namespace leat::grpc_door
