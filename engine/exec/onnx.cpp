// The `onnx` executor: ONNX Runtime on this process's processors. Inputs and outputs stay in the caller's memory.
//
// A model's first dimension is the batch. Where it is fixed at 1 (old models), a batch is run row by row. Every other
// dimension of an input must be a number. extra: optimization=off|basic|extended|all (default all); cuts=NAME<tab>NAME...:
// the tensors that the model's blocks meet at (a profile's `cuts`), needed where a block range is less than the model.
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/exec/onnx_library.h"
#include "engine/exec/onnx_split.h"
#include "engine/exec/registry.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxTensors = 16;   // inputs, and outputs
constexpr std::size_t kMaxBindings = 64;  // sets of buffers remembered, so that a run builds nothing

const OrtApi& api() { return *onnx_library().value().api; }

// A line that names the file already.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

// Throws with ONNX Runtime's own words, first line only. Control plane.
void check(OrtStatus* status) {
  if (status == nullptr) return;
  std::string text = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  text.resize(std::min(text.find('\n'), text.size()));
  throw std::runtime_error(text);
}

template <class T>
struct Releaser;
#define LEAT_ORT(TYPE)                                                       \
  template <>                                                                \
  struct Releaser<Ort##TYPE> {                                               \
    void operator()(Ort##TYPE* p) const noexcept { api().Release##TYPE(p); } \
  };
LEAT_ORT(Session)
LEAT_ORT(SessionOptions)
LEAT_ORT(MemoryInfo)
LEAT_ORT(Value)
LEAT_ORT(TypeInfo)
LEAT_ORT(TensorTypeAndShapeInfo)
#undef LEAT_ORT
template <class T>
using Owned = std::unique_ptr<T, Releaser<T>>;

// ONNX Runtime's environment: one a process, made after the process is pinned (its threads inherit the mask).
OrtEnv* environment() {
  static OrtEnv* const kEnvironment = [] {
    OrtEnv* env = nullptr;
    check(api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "leat", &env));
    check(api().DisableTelemetryEvents(env));
    return env;
  }();
  return kEnvironment;
}

struct Port {
  std::string name;
  leat_tensor tensor{};            // shape[0] is replaced by the batch
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::uint64_t row_bytes = 0;
};

// Values over one set of buffers at one batch.
struct Binding {
  std::uint32_t batch = 0;
  void* data[2 * kMaxTensors] = {};
  std::vector<Owned<OrtValue>> values;       // inputs, then outputs
  const OrtValue* inputs[kMaxTensors] = {};
  OrtValue* outputs[kMaxTensors] = {};
};

struct DtypeRow {
  ONNXTensorElementDataType type;
  leat_dtype dtype;
  std::uint32_t bytes;
};
constexpr DtypeRow kDtypes[] = {{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, LEAT_F32, 4},
                                {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, LEAT_F16, 2},
                                {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, LEAT_U8, 1},
                                {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, LEAT_I64, 8},
                                {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, LEAT_I32, 4}};

}  // namespace
}  // namespace leat::exec

struct leat_session {
  leat::exec::Owned<OrtSession> session;
  leat::exec::Owned<OrtMemoryInfo> memory;
  std::vector<leat::exec::Port> inputs, outputs;
  std::vector<const char*> input_names, output_names;
  std::vector<leat::exec::Binding> bindings;
  std::size_t oldest = 0;         // binding to be replaced next
  bool row_by_row = false;        // the model's batch is fixed at 1
  std::uint32_t batch_max = 1;
};

namespace leat::exec {
namespace {

void set_type_and_shape(Port& port, const OrtTensorTypeAndShapeInfo* info) {
  check(api().GetTensorElementType(info, &port.type));
  const auto row = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeRow& r) { return r.type == port.type; });
  if (row == std::end(kDtypes)) throw std::runtime_error("'" + port.name + "' has an element type that is not float32, float16, uint8, int32 or int64");
  port.tensor.dtype = static_cast<std::uint8_t>(row->dtype);
  std::size_t rank = 0;
  check(api().GetDimensionsCount(info, &rank));
  if (rank < 1 || rank > std::size(port.tensor.shape)) throw std::runtime_error("'" + port.name + "' has " + std::to_string(rank) + " dimensions; 1 to 8 are served");
  port.tensor.rank = static_cast<std::uint32_t>(rank);
  check(api().GetDimensions(info, port.tensor.shape, rank));
  port.row_bytes = row->bytes;
  for (std::size_t d = 1; d < rank; ++d) port.row_bytes *= static_cast<std::uint64_t>(std::max<std::int64_t>(port.tensor.shape[d], 0));
}

std::vector<Port> ports_of(OrtSession* session, bool inputs) {
  OrtAllocator* allocator = nullptr;
  check(api().GetAllocatorWithDefaultOptions(&allocator));
  std::size_t count = 0;
  check(inputs ? api().SessionGetInputCount(session, &count) : api().SessionGetOutputCount(session, &count));
  if (count == 0 || count > kMaxTensors) throw std::runtime_error(std::string("has ") + std::to_string(count) + (inputs ? " inputs" : " outputs") + "; 1 to 16 are served");
  std::vector<Port> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    check(inputs ? api().SessionGetInputName(session, i, allocator, &name) : api().SessionGetOutputName(session, i, allocator, &name));
    out[i].name = name;
    check(api().AllocatorFree(allocator, name));
    OrtTypeInfo* raw = nullptr;
    check(inputs ? api().SessionGetInputTypeInfo(session, i, &raw) : api().SessionGetOutputTypeInfo(session, i, &raw));
    const Owned<OrtTypeInfo> type(raw);
    const OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api().CastTypeInfoToTensorInfo(type.get(), &info));
    if (info == nullptr) throw std::runtime_error("'" + out[i].name + "' is not a tensor");
    set_type_and_shape(out[i], info);
    if (!inputs) continue;
    for (std::uint32_t d = 1; d < out[i].tensor.rank; ++d) {
      if (out[i].tensor.shape[d] < 1) throw std::runtime_error("input '" + out[i].name + "' leaves dimension " + std::to_string(d) + " open; export the model with a fixed size (only the batch may be open)");
    }
  }
  return out;
}

OrtValue* value_over(const leat_session& s, const Port& port, std::uint32_t batch, void* data) {
  std::int64_t shape[8];
  std::copy_n(port.tensor.shape, port.tensor.rank, shape);
  shape[0] = batch;
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(s.memory.get(), data, batch * port.row_bytes, shape, port.tensor.rank, port.type, &value));
  return value;
}

// One run on zeros: the model works, its outputs' true shapes are known, and its memory is there before the first frame.
void try_once(leat_session& s) {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Owned<OrtValue>> values;
  const OrtValue* inputs[kMaxTensors] = {};
  OrtValue* outputs[kMaxTensors] = {};
  for (const Port& port : s.inputs) {
    buffers.emplace_back(port.row_bytes);
    values.emplace_back(value_over(s, port, 1, buffers.back().data()));
    inputs[values.size() - 1] = values.back().get();
  }
  check(api().Run(s.session.get(), nullptr, s.input_names.data(), inputs, s.inputs.size(), s.output_names.data(), s.outputs.size(), outputs));
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    values.emplace_back(outputs[i]);
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    check(api().GetTensorTypeAndShape(outputs[i], &raw));
    const Owned<OrtTensorTypeAndShapeInfo> info(raw);
    set_type_and_shape(s.outputs[i], info.get());
    if (s.outputs[i].tensor.shape[0] != 1) throw std::runtime_error("output '" + s.outputs[i].name + "' does not have the batch as its first dimension");
  }
}

Owned<OrtSessionOptions> options_for(const leat_session_options& o) {
  OrtSessionOptions* raw = nullptr;
  check(api().CreateSessionOptions(&raw));
  Owned<OrtSessionOptions> out(raw);
  check(api().SetIntraOpNumThreads(raw, static_cast<int>(std::max(o.threads, 1u))));  // the default ignores the affinity mask
  check(api().SetInterOpNumThreads(raw, 1));
  check(api().AddSessionConfigEntry(raw, "session.intra_op.allow_spinning", "0"));
  const std::string level = extra_value(o.extra, "optimization");
  if (level.empty() || level == "all") check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_ALL));
  else if (level == "extended") check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_EXTENDED));
  else if (level == "basic") check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_BASIC));
  else if (level == "off") check(api().SetSessionGraphOptimizationLevel(raw, ORT_DISABLE_ALL));
  else throw std::runtime_error("optimization=" + level + " is not known; write off, basic, extended or all");
  return out;
}

// The whole file, or the sub-model of a block range.
Owned<OrtSession> session_of(const leat_session_options& o) {
  const auto options = options_for(o);
  const auto cuts = parse_cuts(extra_value(o.extra, "cuts"));
  OrtSession* session = nullptr;
  const std::uint32_t end = o.end_block == UINT32_MAX ? static_cast<std::uint32_t>(cuts.size()) + 1 : o.end_block;
  if (o.first_block == 0 && (o.end_block == UINT32_MAX || (!cuts.empty() && end == cuts.size() + 1))) {
    check(api().CreateSession(environment(), o.model_path, options.get(), &session));
    return Owned<OrtSession>(session);
  }
  if (cuts.empty()) throw std::runtime_error("a range of its blocks needs to know where they meet; name its profile, which holds the cuts");
  auto graph = OnnxGraph::read(o.model_path);
  if (!graph) throw Refused{graph.error()};
  const auto block = graph->block(cuts, o.first_block, end);
  if (!block) throw Refused{block.error()};
  const std::string folder = std::filesystem::absolute(o.model_path).parent_path().string();  // weights in files of their own
  check(api().AddSessionConfigEntry(options.get(), "session.model_external_initializers_file_folder_path", folder.c_str()));
  check(api().CreateSessionFromArray(environment(), block->data(), block->size(), options.get(), &session));
  return Owned<OrtSession>(session);
}

void open_session(const leat_session_options& o, leat_session& s) {
  OrtMemoryInfo* memory = nullptr;
  check(api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  s.memory.reset(memory);
  s.session = session_of(o);
  s.inputs = ports_of(s.session.get(), true);
  s.outputs = ports_of(s.session.get(), false);
  for (const Port& p : s.inputs) s.input_names.push_back(p.name.c_str());
  for (const Port& p : s.outputs) s.output_names.push_back(p.name.c_str());
  for (const Port& p : s.inputs) {
    const std::int64_t batch = p.tensor.shape[0];
    if (batch > 1) throw std::runtime_error("input '" + p.name + "' fixes the batch at " + std::to_string(batch) + "; export the model with an open batch dimension, or a batch of 1");
    s.row_by_row = s.row_by_row || batch == 1;
  }
  s.batch_max = std::max(o.batch_max, 1u);
  try_once(s);
  s.bindings.resize(kMaxBindings);
  for (Binding& b : s.bindings) b.values.reserve(s.inputs.size() + s.outputs.size());
}

int open(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes) {
  const std::string path = options->model_path != nullptr ? options->model_path : "";
  if (!onnx_library()) return executor_error(error, error_bytes, onnx_library().error());
  if (::access(path.c_str(), R_OK) != 0) return executor_error(error, error_bytes, path + ": cannot be read: " + std::strerror(errno) + "; name an ONNX file");
  try {
    auto session = std::make_unique<leat_session>();
    open_session(*options, *session);
    *out = session.release();
    return 0;
  } catch (const Refused& e) {
    return executor_error(error, error_bytes, e.what());
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, path + ": " + e.what());
  }
}

void close(leat_session* session) { delete session; }

int describe(leat_session* s, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count, leat_tensor* outputs, std::uint32_t* output_count, char* error,
             size_t error_bytes) {
  if (*input_count < s->inputs.size() || *output_count < s->outputs.size()) return executor_error(error, error_bytes, "onnx: describe() was given too little room");
  const auto fill = [batch](const std::vector<Port>& ports, leat_tensor* to, std::uint32_t* count) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      to[i] = ports[i].tensor;
      to[i].shape[0] = batch;
      to[i].bytes = batch * ports[i].row_bytes;
    }
    *count = static_cast<std::uint32_t>(ports.size());
  };
  fill(s->inputs, inputs, input_count);
  fill(s->outputs, outputs, output_count);
  return 0;
}

// The values over these buffers: remembered from an earlier run, or made now in place of the oldest.
Binding& binding_for(leat_session& s, std::uint32_t batch, void* const* data) {
  const std::size_t count = s.inputs.size() + s.outputs.size();
  for (Binding& b : s.bindings) {
    if (b.batch == batch && std::equal(data, data + count, b.data)) return b;
  }
  Binding& b = s.bindings[s.oldest];
  s.oldest = (s.oldest + 1) % s.bindings.size();
  b.batch = 0;  // not found by a later run if what follows fails
  b.values.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const bool input = i < s.inputs.size();
    const Port& port = input ? s.inputs[i] : s.outputs[i - s.inputs.size()];
    b.values.emplace_back(value_over(s, port, batch, data[i]));
    if (input) b.inputs[i] = b.values.back().get();
    else b.outputs[i - s.inputs.size()] = b.values.back().get();
  }
  std::copy_n(data, count, b.data);
  b.batch = batch;
  return b;
}

int run(leat_session* s, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count, leat_tensor* outputs, std::uint32_t output_count, char* error,
        size_t error_bytes) {
  if (input_count != s->inputs.size() || output_count != s->outputs.size()) return executor_error(error, error_bytes, "onnx: run() was given another number of tensors than the model has");
  void* data[2 * kMaxTensors];
  for (std::uint32_t i = 0; i < input_count; ++i) {
    if (inputs[i].bytes < batch * s->inputs[i].row_bytes) return executor_error(error, error_bytes, "onnx: input '" + s->inputs[i].name + "' is too short");
  }
  for (std::uint32_t i = 0; i < output_count; ++i) {
    if (outputs[i].bytes < batch * s->outputs[i].row_bytes) return executor_error(error, error_bytes, "onnx: output '" + s->outputs[i].name + "' has too little room");
  }
  const std::uint32_t runs = s->row_by_row ? batch : 1, rows = s->row_by_row ? 1 : batch;
  try {
    for (std::uint32_t r = 0; r < runs; ++r) {
      for (std::uint32_t i = 0; i < input_count; ++i) data[i] = static_cast<std::byte*>(inputs[i].data) + r * s->inputs[i].row_bytes;
      for (std::uint32_t i = 0; i < output_count; ++i) data[input_count + i] = static_cast<std::byte*>(outputs[i].data) + r * s->outputs[i].row_bytes;
      Binding& b = binding_for(*s, rows, data);
      check(api().Run(s->session.get(), nullptr, s->input_names.data(), b.inputs, input_count, s->output_names.data(), output_count, b.outputs));
    }
    return 0;
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, std::string("onnx: ") + e.what());
  }
}

}  // namespace

const leat_executor* onnx_executor() {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "onnx", open, close, describe, run};
  return &kExecutor;
}

}  // namespace leat::exec
