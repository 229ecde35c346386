#include "tools/leat/gateway/kserve/describe.h"

#include <algorithm>

#include "tools/leat/gateway/kserve/datatypes.h"
#include "tools/leat/gateway/kserve/infer_request.h"

namespace leat::gateway {
namespace {

// Of one item; Triton's configurations leave the batch out.
Json dims_of(const Tensor& tensor) {
  Json out = Json::array();
  for (std::uint32_t d = 0; d < tensor.shape.rank; ++d)
    out.push_back(tensor.shape.dims[d] == 0 ? std::int64_t{-1} : std::int64_t{tensor.shape.dims[d]});
  return out;
}

Json shape_of(const Tensor& tensor) {
  Json out = Json::array();
  out.push_back(-1);
  for (const Json& d : dims_of(tensor)) out.push_back(d);
  return out;
}

Json metadata_of(const std::vector<Tensor>& tensors) {
  Json out = Json::array();
  for (const Tensor& t : tensors)
    out.push_back({{"name", t.name}, {"datatype", datatype_of(t.shape.dtype)}, {"shape", shape_of(t)}});
  return out;
}

Json config_of(const std::vector<Tensor>& tensors) {
  Json out = Json::array();
  for (const Tensor& t : tensors)
    out.push_back({{"name", t.name}, {"data_type", config_type_of(t.shape.dtype)}, {"dims", dims_of(t)}});
  return out;
}

std::string python_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "'";
}

// What a model of this shape does, where nobody says: masks come as a second output of planes, classes alone as a row.
const char* task_of(const Model& model) {
  if (model.outputs.size() == 1 && model.outputs[0].shape.rank == 1) return "classify";
  const bool planes = std::any_of(model.outputs.begin(), model.outputs.end(),
                                  [](const Tensor& t) { return t.shape.rank == 3 && t.shape.dims[1] > 1; });
  return model.outputs.size() == 2 && planes ? "segment" : "detect";
}

std::string python_metadata(const Model& model, std::span<const std::string> class_names) {
  std::string names;
  for (std::size_t i = 0; i < class_names.size(); ++i)
    names += (i == 0 ? "" : ", ") + std::to_string(i) + ": " + python_text(class_names[i]);
  std::uint32_t height = 0, width = 0, channels = 3;
  if (!model.inputs.empty() && model.inputs[0].shape.rank == 3) {
    const auto& dims = model.inputs[0].shape.dims;
    const bool last = dims[2] <= 4 && dims[0] > 4;
    channels = last ? dims[2] : dims[0];
    height = last ? dims[0] : dims[1];
    width = last ? dims[1] : dims[2];
  }
  return std::string("{'task': '") + task_of(model) +
         "', 'stride': 32, 'batch': 1, 'channels': " + std::to_string(channels) + ", 'imgsz': [" +
         std::to_string(height) + ", " + std::to_string(width) + "], 'names': {" + names + "}}";
}

Json count_and_time(std::uint64_t count, std::uint64_t ns) { return {{"count", count}, {"ns", ns}}; }

}  // namespace

Json server_metadata(bool shared_memory) {
  Json extensions = Json::array();
  for (const char* word : {"binary_tensor_data", "parameters", "model_configuration", "statistics", "model_repository"})
    extensions.push_back(word);
  if (shared_memory) extensions.push_back("system_shared_memory");
  return {{"name", "leat"}, {"version", LEAT_VERSION}, {"extensions", extensions}};
}

Json model_metadata(const Model& model) {
  Json versions = Json::array();
  versions.push_back(model.version);
  return {{"name", model.name},
          {"versions", versions},
          {"platform", "onnxruntime_onnx"},
          {"inputs", metadata_of(model.inputs)},
          {"outputs", metadata_of(model.outputs)}};
}

Json model_config(const Model& model, std::span<const std::string> class_names) {
  Json out = {{"name", model.name},
              {"platform", "onnxruntime_onnx"},
              {"backend", "onnxruntime"},
              {"max_batch_size", kMaxItems},
              {"input", config_of(model.inputs)},
              {"output", config_of(model.outputs)},
              {"default_model_filename", "model.onnx"}};
  out["parameters"] = Json::object();
  out["parameters"]["metadata"] = Json::object();
  out["parameters"]["metadata"]["string_value"] = python_metadata(model, class_names);
  return out;
}

Json model_statistics(const Model& model, const ModelCounts& counts) {
  const auto ok = counts.by_status.find(200);
  const std::uint64_t good = ok == counts.by_status.end() ? 0 : ok->second;
  const auto completed = counts.by_outcome.find(LEAT_OUTCOME_completed);
  const std::uint64_t items = completed == counts.by_outcome.end() ? 0 : completed->second;
  std::uint64_t all = 0;
  for (const auto& [status, count] : counts.by_status) all += count;
  const std::uint64_t spent = counts.queue_ns + counts.compute_ns + counts.input_ns + counts.output_ns;
  return {{"name", model.name},
          {"version", model.version},
          {"last_inference", counts.last_unix_ms},
          {"inference_count", items},
          {"execution_count", items},
          {"inference_stats",
           {{"success", count_and_time(good, spent)},
            {"fail", count_and_time(all - good, 0)},
            {"queue", count_and_time(all, counts.queue_ns)},
            {"compute_input", count_and_time(all, counts.input_ns)},
            {"compute_infer", count_and_time(good, counts.compute_ns)},
            {"compute_output", count_and_time(good, counts.output_ns)},
            {"cache_hit", count_and_time(0, 0)},
            {"cache_miss", count_and_time(0, 0)}}},
          {"batch_stats", Json::array()}};
}

Json repository_index(const Catalogue& catalogue) {
  Json out = Json::array();
  for (const Model& model : catalogue.models)
    out.push_back({{"name", model.name},
                   {"version", model.version},
                   {"state", catalogue.ready() ? "READY" : "UNAVAILABLE"},
                   {"reason", catalogue.ready() ? "" : catalogue.phase}});
  return out;
}

bool is_version(const Model& model, std::string_view version) {
  return version.empty() || version == "1" || version == model.version;
}

}  // namespace leat::gateway
