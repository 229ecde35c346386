#include "engine/exec/onnx/onnx_device.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/exec/onnx/libraries/cuda_libraries.h"
#include "engine/exec/onnx/libraries/onnx_library.h"
#include "engine/exec/onnx/libraries/onnx_status.h"
#include "engine/exec/onnx/onnx_environment.h"
#include "engine/exec/registry.h"

namespace leat::exec {
namespace {

constexpr std::size_t kNodesNamed = 5;

std::string one_of(const char* extra, const char* key, const char* standard,
                   std::initializer_list<std::string_view> allowed) {
  std::string value = extra_value(extra, key);
  if (value.empty()) value = standard;
  std::string list;
  for (const std::string_view a : allowed) {
    if (value == a) return value;
    list += (list.empty() ? "" : ", ") + std::string(a);
  }
  throw std::runtime_error(std::string(key) + "=" + value + " is not known; write one of " + list);
}

void ORT_API_CALL on_log(void* placements, OrtLoggingLevel level, const char*, const char*, const char*,
                         const char* message) {
  if (level >= ORT_LOGGING_LEVEL_ERROR) (void)std::fprintf(stderr, "%s\n", message);
  static_cast<Placements*>(placements)->hear(message);
}

bool is_shape_arithmetic(std::string_view node) {  // "Type (name)"
  constexpr std::string_view kTypes[] = {
      "Add",   "Cast",    "Concat", "Constant", "ConstantOfShape", "Div",     "Equal", "Expand",    "Gather", "Mul",
      "Range", "Reshape", "Shape",  "Size",     "Slice",           "Squeeze", "Sub",   "Unsqueeze", "Where"};
  const std::string_view type = node.substr(0, node.find(' '));
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// Its engines are built when the session opens, and kept nowhere: what a worker would write it may not write.
void add_tensorrt(const OrtApi& api, OrtSessionOptions* options, void* stream) {
  OrtTensorRTProviderOptionsV2* raw = nullptr;
  check(api, api.CreateTensorRTProviderOptions(&raw));
  const auto release = [&api](OrtTensorRTProviderOptionsV2* p) { api.ReleaseTensorRTProviderOptions(p); };
  const std::unique_ptr<OrtTensorRTProviderOptionsV2, decltype(release)> provider(raw, release);
  const char* const keys[] = {"device_id", "trt_engine_cache_enable", "trt_timing_cache_enable"};
  const char* const values[] = {"0", "0", "0"};
  check(api, api.UpdateTensorRTProviderOptions(provider.get(), keys, values, std::size(keys)));
  check(api, api.UpdateTensorRTProviderOptionsWithValue(provider.get(), "user_compute_stream", stream));
  check(api, api.SessionOptionsAppendExecutionProvider_TensorRT_V2(options, provider.get()));
}

}  // namespace

DeviceProvider device_provider_of(const char* extra) {
  return one_of(extra, "provider", "cuda", {"cuda", "tensorrt"}) == "cuda" ? DeviceProvider::cuda
                                                                           : DeviceProvider::tensorrt;
}

void add_device_provider(const OrtApi& api, OrtSessionOptions* options, void* stream, const char* extra,
                         const Precision& precision, bool graphs) {
  if (device_provider_of(extra) == DeviceProvider::tensorrt) add_tensorrt(api, options, stream);
  OrtCUDAProviderOptionsV2* raw = nullptr;
  check(api, api.CreateCUDAProviderOptions(&raw));
  const auto release = [&api](OrtCUDAProviderOptionsV2* p) { api.ReleaseCUDAProviderOptions(p); };
  const std::unique_ptr<OrtCUDAProviderOptionsV2, decltype(release)> provider(raw, release);
  const std::string asked = one_of(extra, "tf32", "0", {"0", "1"}),
                    nhwc = one_of(extra, "nhwc", precision.half && !precision.single ? "1" : "0", {"0", "1"});
  const std::string tf32 = precision.half ? "1" : asked;
  if (precision.half && precision.single && asked == "0") (void)::setenv("NVIDIA_TF32_OVERRIDE", "0", 0);
  std::string search = one_of(extra, "search", "heuristic", {"heuristic", "default", "exhaustive"});
  for (char& c : search) c = static_cast<char>(c - 'a' + 'A');
  // All keys in one call: each call sets those it does not name back to their defaults.
  const std::pair<const char*, const char*> settings[] = {{"device_id", "0"},  // the only one that is visible
                                                          {"arena_extend_strategy", "kSameAsRequested"},
                                                          {"cudnn_conv_algo_search", search.c_str()},
                                                          {"cudnn_conv_use_max_workspace", "1"},
                                                          {"do_copy_in_default_stream", "1"},
                                                          {"enable_cuda_graph", graphs ? "1" : "0"},
                                                          {"use_tf32", tf32.c_str()},
                                                          {"prefer_nhwc", nhwc.c_str()}};
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : settings) keys.push_back(key), values.push_back(value);
  check(api, api.UpdateCUDAProviderOptions(provider.get(), keys.data(), values.data(), keys.size()));
  check(api, api.UpdateCUDAProviderOptionsWithValue(provider.get(), "user_compute_stream", stream));
  check(api, api.SessionOptionsAppendExecutionProvider_CUDA_V2(options, provider.get()));
}

Status try_cuda_provider() {
  const auto& library = onnx_library();
  if (!library.ok()) return Error{library.error()};
  if (auto loaded = load_cuda_libraries(library->path); !loaded.ok()) return loaded;
  const OrtApi& api = *library->api;
  const auto release = [&api](OrtSessionOptions* p) { api.ReleaseSessionOptions(p); };
  try {
    OrtEnv* env = nullptr;
    check(api, create_environment(api, ORT_LOGGING_LEVEL_FATAL, &env));
    OrtSessionOptions* raw = nullptr;
    check(api, api.CreateSessionOptions(&raw));
    const std::unique_ptr<OrtSessionOptions, decltype(release)> options(raw, release);
    OrtCUDAProviderOptionsV2* settings = nullptr;
    check(api, api.CreateCUDAProviderOptions(&settings));
    const auto release_settings = [&api](OrtCUDAProviderOptionsV2* p) { api.ReleaseCUDAProviderOptions(p); };
    const std::unique_ptr<OrtCUDAProviderOptionsV2, decltype(release_settings)> held(settings, release_settings);
    check(api, api.SessionOptionsAppendExecutionProvider_CUDA_V2(options.get(), settings));
  } catch (const std::exception& e) {
    return Error{"ONNX Runtime " + library->version + " (" + library->path + "): " + e.what()};
  }
  return Done{};
}

OrtRunOptions* device_run_options(const OrtApi& api, bool waits, int graph) {
  OrtRunOptions* out = nullptr;
  check(api, api.CreateRunOptions(&out));
  if (!waits) check(api, api.AddRunConfigEntry(out, "disable_synchronize_execution_providers", "1"));
  check(api, api.AddRunConfigEntry(out, "gpu_graph_id", std::to_string(graph).c_str()));
  check(api, api.RunOptionsSetRunLogSeverityLevel(out, ORT_LOGGING_LEVEL_ERROR));  // its session's is Placements'
  return out;
}

void Placements::listen(const OrtApi& api, OrtSessionOptions* options) {
  check(api, api.SetUserLoggingFunction(options, on_log, this));
  check(api, api.SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_VERBOSE));
}

// "Node(s) placed on [CPUExecutionProvider]. ..." is followed by a line for each: "  Type (name)".
void Placements::hear(std::string_view line) {
  copies_ = copies_ || line.find("Memcpy nodes are added") != std::string_view::npos;
  if (line.find("placed on [") != std::string_view::npos) {
    on_host_ = line.find("placed on [CPUExecutionProvider]") != std::string_view::npos;
    return;
  }
  const std::size_t first = line.find_first_not_of(' ');
  if (!on_host_) return;
  if (first != 2 || line.back() != ')') {
    on_host_ = false;
    return;
  }
  nodes_.emplace_back(line.substr(first));
}

std::vector<std::string> Placements::beside_shapes() const {
  std::vector<std::string> out;
  std::remove_copy_if(nodes_.begin(), nodes_.end(), std::back_inserter(out), is_shape_arithmetic);
  return out;
}

bool Placements::copies_data() const { return copies_ && (nodes_.empty() || !beside_shapes().empty()); }

std::string Placements::left_behind() const {
  const std::vector<std::string> nodes = beside_shapes();
  if (nodes.empty()) return "some of its nodes";
  std::string out;
  for (std::size_t i = 0; i < std::min(nodes.size(), kNodesNamed); ++i) out += (i == 0 ? "" : ", ") + nodes[i];
  if (nodes.size() > kNodesNamed) out += " and " + std::to_string(nodes.size() - kNodesNamed) + " more";
  return out;
}

DeviceRow::DeviceRow(const leat_device_api* a, leat_device* d, std::uint64_t bytes) : api(a), device(d) {
  char error[512] = "";
  if (api->allocate(device, bytes, 0, &memory, error, sizeof error) != LEAT_DEVICE_OK) throw std::runtime_error(error);
}
DeviceRow::DeviceRow(DeviceRow&& other) noexcept
    : api(other.api), device(other.device), memory(std::exchange(other.memory, {})) {}
DeviceRow::~DeviceRow() {
  if (memory.address != nullptr) api->release(device, &memory);
}

}  // namespace leat::exec
