#include "tools/leat/gateway/serving/catalogue.h"

#include <algorithm>
#include <optional>

namespace leat::gateway {
namespace {

std::optional<std::uint32_t> dtype_of(std::string_view word) {
#define X(name, value, bytes, text) \
  if (word == (text)) return value;
  LEAT_DTYPES(X)
#undef X
  return std::nullopt;
}

// Nothing where an entry is no tensor (boxes, texts).
std::optional<Tensor> tensor_of(const Json& json) {
  const Json* const word = json.find("dtype");
  const std::string kind = json.value("kind", "tensor");
  if (word == nullptr || !word->is_string() || (kind != "tensor" && kind != "embedding" && kind != "map"))
    return std::nullopt;
  const auto dtype = dtype_of(word->get<std::string>());
  const auto dims = json.at("shape").get<std::vector<std::uint32_t>>();
  if (!dtype || dims.size() > LEAT_MAX_TENSOR_RANK) return std::nullopt;
  Tensor out{.name = json.value("name", ""),
             .shape = {.dtype = *dtype, .rank = static_cast<std::uint32_t>(dims.size())}};
  out.bytes = leat_dtype_bytes(*dtype);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    out.shape.dims[d] = dims[d];
    out.bytes *= dims[d];
  }
  return out;
}

void add_tensors(const Json& module, const char* key, std::vector<Tensor>& to) {
  const Json* const list = module.find(key);
  if (list == nullptr) return;
  for (const Json& one : *list)
    if (auto tensor = tensor_of(one)) to.push_back(std::move(*tensor));
}

// How fast one class runs a module: a batch of one, and items a second at its best batch.
struct Speed {
  double one_ms = 0, rate = 0;
};
Speed speed_of(const Json& latency_ms) {
  Speed out;
  double batch = 1;
  for (const Json& ms : latency_ms) {
    if (!ms.is_number() || ms.get<double>() <= 0) continue;
    if (batch == 1) out.one_ms = ms.get<double>();
    out.rate = std::max(out.rate, batch * 1000 / ms.get<double>());
    ++batch;
  }
  return out;
}

// A chain of modules is as fast as its slowest.
void add_speed(const Json& module, const Json& partitions, Model& model) {
  double one_ms = 0, rate = 0;
  if (const Json* const by_class = module.find("latency_ms"); by_class != nullptr && by_class->is_object())
    for (const auto& [name, latency] : by_class->items()) {
      const Speed speed = speed_of(latency);
      if (speed.one_ms > 0 && (one_ms == 0 || speed.one_ms < one_ms)) one_ms = speed.one_ms;
      for (const Json& p : partitions)
        if (p.value("class", "") == name && p.value("state", "") == "up") rate += speed.rate;
    }
  model.batch_of_one_ms += one_ms;
  if (rate > 0) model.items_per_second = model.items_per_second == 0 ? rate : std::min(model.items_per_second, rate);
}

Model model_of(const Json& application, const Json& partitions) {
  Model out;
  out.name = application.at("name").get<std::string>();
  out.slo_ns = static_cast<std::int64_t>(application.value("slo_ms", 0.0) * 1e6);
  if (const Json* const version = application.find("model_version"); version != nullptr && version->is_string())
    out.version = version->get<std::string>();
  bool first = true, others = false;
  for (const Json& module : application.at("modules")) {
    if (first) add_tensors(module, "inputs", out.inputs);
    if (first) out.batch = module.value("batch", 1U);
    add_tensors(module, "outputs", out.outputs);
    add_speed(module, partitions, out);
    if (const Json* const parts = module.find("outputs")) others = others || parts->size() != 0;
    first = false;
  }
  out.pictures = out.inputs.empty();
  if (out.pictures)
    out.inputs.push_back(
        {.name = std::string(kPictureInput), .shape = {.dtype = LEAT_U8, .rank = 3, .dims = {0, 0, 3}}});
  if (!others) {  // what the head of a result holds depends on the model: each is there where it was written
    out.outputs.push_back({.name = "detections", .shape = {.dtype = LEAT_F32, .rank = 2, .dims = {0, 6}}});
    out.outputs.push_back({.name = "classes", .shape = {.dtype = LEAT_F32, .rank = 2, .dims = {0, 2}}});
    out.outputs.push_back({.name = "checksum", .shape = {.dtype = LEAT_U64, .rank = 1, .dims = {1}}});
  }
  return out;
}

}  // namespace

const Model* Catalogue::find(std::string_view name) const noexcept {
  for (const Model& m : models)
    if (m.name == name) return &m;
  return nullptr;
}

Result<Catalogue> catalogue_of(std::string_view status_json) try {
  const Json status = Json::parse(status_json);
  Catalogue out;
  out.phase = status.value("phase", "");
  out.serving = out.phase == "serving";
  out.leatd_version = status.value("version", "");
  const Json& partitions = status.at("partitions");
  for (const Json& p : partitions) {
    ++out.partitions;
    out.partitions_up += p.value("state", "") == "up";
  }
  for (const Json& application : status.at("applications")) out.models.push_back(model_of(application, partitions));
  return out;
} catch (const JsonError& error) {
  return Error{std::string("leatd's status is not what this release knows: ") + error.what()};
}

}  // namespace leat::gateway
