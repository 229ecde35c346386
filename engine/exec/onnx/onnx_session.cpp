#include "engine/exec/onnx/onnx_session.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/onnx/libraries/cuda_libraries.h"
#include "engine/exec/onnx/onnx_environment.h"
#include "engine/exec/onnx/onnx_split.h"

namespace leat::exec::ort {
namespace {

// One arena for all sessions on this process's processors, which run one after the other: each by itself would keep the
// memory of its largest run. It grows by what is asked for, not in powers of two.
void register_arena(OrtEnv* env) {
  OrtMemoryInfo* raw = nullptr;
  check(api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw));
  const Owned<OrtMemoryInfo> memory(raw);
  const char* const keys[] = {"arena_extend_strategy"};
  const std::size_t values[] = {1};  // as asked for
  OrtArenaCfg* settings = nullptr;
  check(api().CreateArenaCfgV2(keys, values, std::size(keys), &settings));
  const Owned<OrtArenaCfg> arena(settings);
  check(api().CreateAndRegisterAllocator(env, memory.get(), arena.get()));
}

// ONNX Runtime's environment: one a process, made after the process is pinned (its threads inherit the mask).
OrtEnv* environment() {
  static OrtEnv* const kEnvironment = [] {
    OrtEnv* env = nullptr;
    check(create_environment(api(), ORT_LOGGING_LEVEL_ERROR, &env));
    register_arena(env);
    return env;
  }();
  return kEnvironment;
}

struct DtypeRow {
  ONNXTensorElementDataType type;
  leat_dtype dtype;
};
constexpr DtypeRow kDtypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, LEAT_F32},    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, LEAT_F16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, LEAT_U8},     {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, LEAT_I64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, LEAT_I32},    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, LEAT_I8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, LEAT_U16},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, LEAT_I16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, LEAT_U32},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, LEAT_U64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, LEAT_F64},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, LEAT_BOOL},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, LEAT_BF16}};

// The bytes of one item, or 0 where a dimension is open.
std::uint64_t item_bytes(const Port& port) {
  std::uint64_t bytes = port.element_bytes;
  for (std::uint32_t d = port.batched() ? 1 : 0; d < port.tensor.rank; ++d) {
    if (port.tensor.shape[d] < 1) return 0;
    bytes *= static_cast<std::uint64_t>(port.tensor.shape[d]);
  }
  return bytes;
}

void set_type_and_shape(Port& port, const OrtTensorTypeAndShapeInfo* info) {
  check(api().GetTensorElementType(info, &port.type));
  const auto row =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeRow& r) { return r.type == port.type; });
  if (row == std::end(kDtypes))
    throw std::runtime_error("'" + port.name + "' has an element type that is not served (text, complex or packed)");
  port.tensor.dtype = static_cast<std::uint8_t>(row->dtype);
  port.element_bytes = leat_dtype_bytes(row->dtype);
  std::size_t rank = 0;
  check(api().GetDimensionsCount(info, &rank));
  if (rank > std::size(port.tensor.shape))
    throw std::runtime_error("'" + port.name + "' has " + std::to_string(rank) + " dimensions; up to 8 are served");
  port.tensor.rank = static_cast<std::uint32_t>(rank);
  if (rank == 0) port.tensor.flags |= LEAT_TENSOR_UNBATCHED;
  if (rank != 0) check(api().GetDimensions(info, port.tensor.shape, rank));
  port.row_bytes = item_bytes(port);
}

std::vector<Port> ports_of(OrtSession* session, bool inputs) {
  OrtAllocator* allocator = nullptr;
  check(api().GetAllocatorWithDefaultOptions(&allocator));
  std::size_t count = 0;
  check(inputs ? api().SessionGetInputCount(session, &count) : api().SessionGetOutputCount(session, &count));
  if (count == 0 || count > kMaxTensors)
    throw std::runtime_error(std::string("has ") + std::to_string(count) + (inputs ? " inputs" : " outputs") +
                             "; 1 to 16 are served");
  std::vector<Port> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    check(inputs ? api().SessionGetInputName(session, i, allocator, &name)
                 : api().SessionGetOutputName(session, i, allocator, &name));
    out[i].name = name;
    check(api().AllocatorFree(allocator, name));
    OrtTypeInfo* raw = nullptr;
    check(inputs ? api().SessionGetInputTypeInfo(session, i, &raw) : api().SessionGetOutputTypeInfo(session, i, &raw));
    const Owned<OrtTypeInfo> type(raw);
    const OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api().CastTypeInfoToTensorInfo(type.get(), &info));
    if (info == nullptr) throw std::runtime_error("'" + out[i].name + "' is not a tensor");
    set_type_and_shape(out[i], info);
  }
  return out;
}

// One picture without a batch: [3, h, w] or [h, w, 3].
bool lone_picture(const leat_tensor& t) {
  if (t.rank != 3) return false;
  return t.shape[0] == 3 || (t.shape[2] == 3 && (t.shape[0] > 4 || (t.shape[0] < 1 && t.shape[1] < 1)));
}

// Settles what the first dimension of each input is, and how many items a run takes.
void settle_batch(Session& s, bool unbatched) {
  unbatched = unbatched || lone_picture(s.inputs[0].tensor) || s.inputs[0].tensor.rank == 0;
  const std::int64_t batch = unbatched ? 1 : s.inputs[0].tensor.shape[0];
  s.group = batch > 0 ? static_cast<std::uint32_t>(batch) : 0;
  for (Port& p : s.inputs) {
    const bool other =
        p.tensor.rank > 0 && p.tensor.shape[0] > 0 && p.tensor.shape[0] != std::max<std::int64_t>(batch, -1);
    if (unbatched || (&p != &s.inputs[0] && other)) p.tensor.flags |= LEAT_TENSOR_UNBATCHED;
    p.row_bytes = item_bytes(p);
    s.open_sizes = s.open_sizes || p.row_bytes == 0;
  }
  if (unbatched)
    for (Port& p : s.outputs) p.tensor.flags |= LEAT_TENSOR_UNBATCHED;
  for (Port& p : s.outputs) p.row_bytes = item_bytes(p);
}

}  // namespace

OrtValue* value_over(const Session& s, const Port& port, const std::int64_t* shape, std::uint32_t rank, void* data,
                     std::uint64_t bytes) {
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(s.memory.get(), data, bytes, shape, rank, port.type, &value));
  return value;
}
OrtValue* value_over(const Session& s, const Port& port, std::uint32_t batch, void* data) {
  std::int64_t shape[8];
  std::copy_n(port.tensor.shape, port.tensor.rank, shape);
  if (port.batched()) shape[0] = batch;
  return value_over(s, port, shape, port.tensor.rank, data, (port.batched() ? batch : 1) * port.row_bytes);
}

std::uint64_t read_shape(const OrtValue* value, leat_tensor& into) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api().GetTensorTypeAndShape(value, &raw));
  const Owned<OrtTensorTypeAndShapeInfo> info(raw);
  std::size_t rank = 0, elements = 0;
  check(api().GetDimensionsCount(info.get(), &rank));
  if (rank > std::size(into.shape)) throw std::runtime_error("an output has more than 8 dimensions");
  into.rank = static_cast<std::uint32_t>(rank);
  if (rank != 0) check(api().GetDimensions(info.get(), into.shape, rank));
  check(api().GetTensorShapeElementCount(info.get(), &elements));
  return elements * leat_dtype_bytes(into.dtype);
}

namespace {

// One run on zeros, of `rows` items. Returns the shapes that the outputs had.
std::vector<leat_tensor> try_once(Session& s, std::uint32_t rows) {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<DeviceRow> there;  // outlive the values over them
  std::vector<Owned<OrtValue>> values;
  const OrtValue* inputs[kMaxTensors] = {};
  OrtValue* outputs[kMaxTensors] = {};
  for (const Port& port : s.inputs) {
    const std::uint64_t bytes = (port.batched() ? rows : 1) * port.row_bytes;
    void* data = nullptr;
    if (s.device != nullptr) {
      data = there.emplace_back(s.device_api, s.device, bytes).memory.address;
    } else {
      data = buffers.emplace_back(bytes).data();
    }
    values.emplace_back(value_over(s, port, rows, data));
    inputs[values.size() - 1] = values.back().get();
  }
  const Owned<OrtRunOptions> waits(s.provider ? device_run_options(api(), true, kNoGraph) : nullptr);
  check(api().Run(s.session.get(), waits.get(), s.input_names.data(), inputs, s.inputs.size(), s.output_names.data(),
                  s.outputs.size(), outputs));
  std::vector<leat_tensor> shapes;
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    values.emplace_back(outputs[i]);
    shapes.push_back(s.outputs[i].tensor);
    (void)read_shape(outputs[i], shapes.back());
  }
  return shapes;
}

// The model works, its outputs' true shapes are known, and its memory is there before the first frame. An output's
// first dimension is the batch if it is as many as there were items, of one item and of more. On a device the largest
// batch comes first: an arena that grows by what is asked for would otherwise keep the sum of all sizes.
void learn_outputs(Session& s) {
  const std::uint32_t rows = std::max(1u, s.group), more = s.provider ? std::max(2u, s.batch_max) : 2;
  std::vector<leat_tensor> many;
  if (s.group == 0) {
    try {
      many = try_once(s, more);
    } catch (const std::runtime_error&) {
      s.group = 1;  // declared open, but a constant within holds a batch of 1
    }
  }
  const std::vector<leat_tensor> once = try_once(s, rows);
  if (s.group != 0) many = once;
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    Port& port = s.outputs[i];
    const bool declared = port.tensor.rank == 0 || port.tensor.shape[0] > 0;
    const leat_tensor &a = once[i], &b = many[i];
    bool batched = port.batched() && a.rank > 0 && a.shape[0] == rows && b.rank == a.rank;
    if (s.group == 0) batched = batched && b.shape[0] == more;
    if (s.group != 0 && !declared) batched = false;
    std::int64_t smallest = 1;
    bool same = a.rank == b.rank;
    for (std::uint32_t d = 0; d < a.rank; ++d) {
      smallest = std::min(smallest, a.shape[d]);
      same = same && (d == 0 || a.shape[d] == b.shape[d]);
    }
    const leat_tensor was = port.tensor;
    port.settled = same && smallest > 0 && (batched || (a.rank == 0 || a.shape[0] == b.shape[0]));
    if (!batched) port.tensor.flags |= LEAT_TENSOR_UNBATCHED;
    if (!batched && !declared) port.settled = false;  // rows that only a run tells
    port.tensor.rank = a.rank;
    for (std::uint32_t d = 0; d < a.rank; ++d)
      port.tensor.shape[d] = port.settled || (d < was.rank && was.shape[d] > 0) ? a.shape[d] : -1;
    port.row_bytes = port.settled ? item_bytes(port) : 0;
  }
}

Owned<OrtSessionOptions> options_for(const leat_session_options& o, void* stream, bool graphs) {
  OrtSessionOptions* raw = nullptr;
  check(api().CreateSessionOptions(&raw));
  Owned<OrtSessionOptions> out(raw);
  check(api().SetIntraOpNumThreads(
      raw, static_cast<int>(std::max(o.threads, 1u))));  // the default ignores the affinity mask
  check(api().SetInterOpNumThreads(raw, 1));
  check(api().AddSessionConfigEntry(raw, "session.intra_op.allow_spinning", "0"));
  check(api().AddSessionConfigEntry(raw, "session.set_denormal_as_zero", "1"));  // denormals.h says why
  if (stream == nullptr) check(api().AddSessionConfigEntry(raw, "session.use_env_allocators", "1"));
  const std::string level = extra_value(o.extra, "optimization");
  if (level.empty() || level == "all")
    check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_ALL));
  else if (level == "extended")
    check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_EXTENDED));
  else if (level == "basic")
    check(api().SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_BASIC));
  else if (level == "off")
    check(api().SetSessionGraphOptimizationLevel(raw, ORT_DISABLE_ALL));
  else
    throw std::runtime_error("optimization=" + level + " is not known; write off, basic, extended or all");
  if (stream != nullptr) add_device_provider(api(), raw, stream, o.extra, precision_of(o.model_path), graphs);
  return out;
}

MappedFile mapped(const PinnedFile& file) {
  auto out = file.map();
  if (!out) throw Refused{out.error()};
  return std::move(*out);
}

// The files of weights that a pinned model names, handed to the runtime, which copies what it takes of them while the
// session is made. The mappings must live until then.
std::vector<MappedFile> add_weights(const PinnedModel& model, OrtSessionOptions* options) {
  std::vector<MappedFile> out;
  std::vector<const char*> names;
  std::vector<char*> data;
  std::vector<std::size_t> bytes;
  for (const PinnedFile& file : model.files) {
    if (file.location().empty()) continue;
    const MappedFile& weights = out.emplace_back(mapped(file));
    names.push_back(file.location().c_str());
    data.push_back(const_cast<char*>(weights.bytes().data()));
    bytes.push_back(weights.bytes().size());
  }
  if (!out.empty())
    check(api().AddExternalInitializersFromFilesInMemory(options, names.data(), data.data(), bytes.data(), out.size()));
  return out;
}

// The whole file, or the bytes of the sub-model of a block range.
Owned<OrtSession> session_from(const leat_session_options& o, const std::string* block, OrtSessionOptions* options) {
  OrtSession* session = nullptr;
  const WithoutRegistrations quiet;
  const PinnedModel* const model = find_pinned(o.model_path);
  if (model == nullptr && block == nullptr) {
    check(api().CreateSession(environment(), o.model_path, options, &session));
    return Owned<OrtSession>(session);
  }
  std::optional<MappedFile> whole;
  std::vector<MappedFile> weights;
  if (model != nullptr) weights = add_weights(*model, options);
  if (block == nullptr) whole.emplace(mapped(model->files[0]));
  const std::string_view bytes = block == nullptr ? whole->bytes() : std::string_view(*block);
  check(api().CreateSessionFromArray(environment(), bytes.data(), bytes.size(), options, &session));
  Owned<OrtSession> out(session);
  if (model == nullptr) return out;
  if (auto status = model->unchanged(); !status) throw Refused{status.error()};
  return out;
}

// None where the provider has no such memory.
Owned<OrtAllocator> pinned_memory_of(const OrtSession* session) {
  OrtMemoryInfo* memory = nullptr;
  check(api().CreateMemoryInfo(kPinnedMemory, OrtDeviceAllocator, 0, OrtMemTypeCPUOutput, &memory));
  const Owned<OrtMemoryInfo> held(memory);
  OrtAllocator* out = nullptr;
  if (OrtStatus* const none = api().CreateAllocator(session, memory, &out); none != nullptr) api().ReleaseStatus(none);
  return Owned<OrtAllocator>(out);
}

// On a device nodes that would have what lies there copied to the host are refused by name, unless fallback=cpu allows
// it.
void open_runtime_session(const leat_session_options& o, void* stream, bool graphs, Session& s) {
  s.let_go();  // before the next takes its memory
  const auto options = options_for(o, stream, graphs);
  s.placements = std::make_unique<Placements>();
  if (stream != nullptr) s.placements->listen(api(), options.get());
  const auto cuts = parse_cuts(extra_value(o.extra, "cuts"));
  const std::uint32_t end = o.end_block == UINT32_MAX ? static_cast<std::uint32_t>(cuts.size()) + 1 : o.end_block;
  std::string part;
  const std::string* block = nullptr;
  if (o.first_block != 0 || (o.end_block != UINT32_MAX && (cuts.empty() || end != cuts.size() + 1))) {
    if (cuts.empty())
      throw std::runtime_error(
          "a range of its blocks needs to know where they meet; name its profile, which holds the cuts");
    auto graph = OnnxGraph::read(o.model_path);
    if (!graph) throw Refused{graph.error()};
    auto cut = graph->block(cuts, o.first_block, end);
    if (!cut) throw Refused{cut.error()};
    part = std::move(*cut);
    block = &part;
    const std::string folder =
        std::filesystem::absolute(o.model_path).parent_path().string();  // weights in files of their own
    check(api().AddSessionConfigEntry(options.get(), "session.model_external_initializers_file_folder_path",
                                      folder.c_str()));
  }
  s.session = session_from(o, block, options.get());
  if (s.provider) s.pinned = pinned_memory_of(s.session.get());
  if (s.placements->copies_data() && extra_value(o.extra, "fallback") != "cpu")
    throw Refused{std::string(o.model_path) + ": the device cannot run " + s.placements->left_behind() +
                  "; export the model without, or allow it with the option fallback = \"cpu\""};
}

// Where graphs are asked for and the runtime refuses them at once, without.
void open_first_session(const leat_session_options& o, void* stream, Session& s) {
  if (!s.graphs) return open_runtime_session(o, stream, false, s);
  try {
    open_runtime_session(o, stream, true, s);
  } catch (const Refused&) {
    throw;
  } catch (const std::runtime_error& e) {
    s.graphs = s.at_once = false;
    s.report.why_not = e.what();
    return open_runtime_session(o, stream, false, s);
  }
  s.open_again = [&s, again = leat_session_options(o), stream, path = std::string(o.model_path),
                  extra = std::string(o.extra)](bool graphs) mutable {
    again.model_path = path.c_str();
    again.extra = extra.c_str();
    open_runtime_session(again, stream, graphs, s);
  };
}

// Room for what moves. Captured work holds addresses, so it reads and writes here; and so does a run of more rows than
// it was given (few_sizes in onnx.cpp).
void hold_still(Session& s) {
  const std::uint32_t max = std::max(s.batch_max, s.group);
  const auto room = [&](const std::vector<Port>& ports, bool moves) {
    for (const Port& p : ports)
      if (moves) s.still.emplace_back(s.device_api, s.device, (p.batched() ? max : 1) * p.row_bytes);
  };
  room(s.inputs, s.moves_in);
  room(s.outputs, s.moves_out);
  for (auto* const all : {&s.graph_bindings, &s.still_bindings}) {
    all->resize(max);
    for (Binding& b : *all) b.session = &s, b.values.reserve(s.inputs.size() + s.outputs.size());
  }
}

}  // namespace

void open_session(const leat_session_options& o, Session& s) {
  (void)environment();  // a device's provider logs through it from its options on
  OrtMemoryInfo* memory = nullptr;
  void* stream = nullptr;
  if (o.device != nullptr) {
    leat_device_info info{};
    o.device_api->info(o.device, &info);
    s.device_api = o.device_api, s.device = o.device;
    s.provider = info.has_provider != 0;
    const bool tensorrt = device_provider_of(o.extra) == DeviceProvider::tensorrt;
    if (s.provider) {
      if (auto loaded = load_cuda_libraries(onnx_library()->path); !loaded.ok()) throw Refused{loaded.error()};
      stream = info.stream;
      s.run_options.reset(device_run_options(api(), false, kNoGraph));
      s.settling_run_options.reset(device_run_options(api(), true, kNoGraph));
    }
    const std::string graphs = extra_value(o.extra, "graphs");
    if (!graphs.empty() && graphs != "0" && graphs != "1" && graphs != "model")
      throw std::runtime_error("graphs=" + graphs +
                               " is not known; write 0, model: the runtime's own alone, or 1: what is measured faster");
    s.moves_in = extra_value(o.extra, "moving_inputs") == "1",
    s.moves_out = extra_value(o.extra, "moving_outputs") == "1";
    s.graphs = graphs != "0" && (s.moves_in || s.moves_out || extra_value(o.extra, "fixed_buffers") == "1");
    s.at_once = s.graphs && graphs != "model" && !tensorrt;
    if (s.graphs && tensorrt) {
      s.graphs = false;
      s.report.why_not = "TensorRT computes (provider = tensorrt)";
    }
  }
  check(s.provider ? api().CreateMemoryInfo(kDeviceMemory, OrtDeviceAllocator, 0, OrtMemTypeDefault, &memory)
                   : api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  s.memory.reset(memory);
  OrtRunOptions* gives_back = nullptr;
  check(api().CreateRunOptions(&gives_back));
  s.gives_back.reset(gives_back);
  check(api().AddRunConfigEntry(gives_back, "memory.enable_memory_arena_shrinkage", "cpu:0"));
  open_first_session(o, stream, s);
  s.inputs = ports_of(s.session.get(), true);
  s.outputs = ports_of(s.session.get(), false);
  for (const Port& p : s.inputs) s.input_names.push_back(p.name.c_str());
  for (const Port& p : s.outputs) s.output_names.push_back(p.name.c_str());
  s.batch_max = std::max(o.batch_max, 1u);
  settle_batch(s, extra_value(o.extra, "unbatched") == "1");
  if (!s.open_sizes) learn_outputs(s);
  const bool known =
      !s.open_sizes && std::all_of(s.outputs.begin(), s.outputs.end(), [](const Port& p) { return p.settled; });
  if (s.device != nullptr && !known)
    throw std::runtime_error(
        "has sizes that only a run tells, which a device does not serve; export it with fixed sizes");
  s.lent.resize(s.outputs.size());
  s.staged.resize(s.inputs.size() + s.outputs.size());
  s.bindings.resize(kMaxBindings);
  for (Binding& b : s.bindings) b.session = &s, b.values.reserve(s.inputs.size() + s.outputs.size());
  if ((s.graphs || s.provider) && (s.moves_in || s.moves_out)) hold_still(s);
}

const OrtRunOptions* host_options(Session& s, std::uint64_t bytes) {
  if (bytes <= s.largest || s.device != nullptr) return nullptr;
  s.largest = bytes;
  return s.gives_back.get();
}

}  // namespace leat::exec::ort
