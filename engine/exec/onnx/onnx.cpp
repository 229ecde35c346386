// The `onnx` executor: ONNX Runtime on this process's processors, or on its device (onnx_device.h). Inputs and outputs
// stay in the caller's memory.
//
// The first dimension is the batch. Where it is fixed at 1 (old models), a batch is run row by row; where it is fixed
// at more, in groups of that many, the last one filled up with zeros. A model whose first input is one picture without
// a batch ([3, h, w] or [h, w, 3]; or extra unbatched=1) runs one item at a time. Other dimensions may be open: then
// the caller gives shapes to run(). Outputs whose shape the model knows only after a run are made by the runtime and
// copied into the caller's room, or lent (executor.h); all others are written where the caller wants them.
//
// On a device a run may use the whole room of its buffers, also what lies behind the batch's rows.
//
// extra: optimization=off|basic|extended|all (default all); unbatched=1; on a device graphs=0|1 (default 1: a batch
// runs as a CUDA graph where that was measured faster), and, which the module says of itself, fixed_buffers=1, or
// moving_inputs=1 and moving_outputs=1: graphs are then captured over buffers of the session's, and copied to and from;
// cuts=NAME<tab>NAME...: the tensors that the model's blocks meet at (a profile's `cuts`), needed where a block range
// is less than the model.
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/onnx/onnx_session.h"

namespace leat::exec {
namespace {

using namespace ort;

Session& of(leat_session* handle) { return *reinterpret_cast<Session*>(handle); }

int open(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes) {
  const std::string path = options->model_path != nullptr ? options->model_path : "";
  if (!onnx_library()) return executor_error(error, error_bytes, onnx_library().error());
  if (::access(pinned_path(path).c_str(), R_OK) != 0)
    return executor_error(error, error_bytes,
                          path + ": cannot be read: " + std::strerror(errno) + "; name an ONNX file");
  try {
    auto session = std::make_unique<Session>();
    open_session(*options, *session);
    *out = reinterpret_cast<leat_session*>(session.release());
    return 0;
  } catch (const Refused& e) {
    return executor_error(error, error_bytes, e.what());
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, path + ": " + e.what());
  }
}

void close(leat_session* handle) { delete &of(handle); }

int describe(leat_session* handle, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count,
             leat_tensor* outputs, std::uint32_t* output_count, char* error, size_t error_bytes) {
  const Session& s = of(handle);
  if (*input_count < s.inputs.size() || *output_count < s.outputs.size())
    return executor_error(error, error_bytes, "onnx: describe() was given too little room");
  const auto fill = [batch, &s](const std::vector<Port>& ports, leat_tensor* to, std::uint32_t* count) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      to[i] = ports[i].tensor;
      to[i].name = ports[i].name.c_str();
      if (ports[i].batched()) to[i].shape[0] = batch;
      to[i].bytes = (ports[i].batched() ? batch : 1) * ports[i].row_bytes;
      to[i].memory = s.device != nullptr ? LEAT_MEMORY_DEVICE : LEAT_MEMORY_HOST;
    }
    *count = static_cast<std::uint32_t>(ports.size());
  };
  fill(s.inputs, inputs, input_count);
  fill(s.outputs, outputs, output_count);
  return 0;
}

void bind(Session& s, Binding& b, std::uint32_t batch, void* const* data) {
  const std::size_t count = s.inputs.size() + s.outputs.size();
  b.batch = 0;  // not found by a later run if what follows fails
  b.values.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const bool input = i < s.inputs.size();
    const Port& port = input ? s.inputs[i] : s.outputs[i - s.inputs.size()];
    b.values.emplace_back(value_over(s, port, batch, data[i]));
    if (input)
      b.inputs[i] = b.values.back().get();
    else
      b.outputs[i - s.inputs.size()] = b.values.back().get();
  }
  std::copy_n(data, count, b.data);
  b.batch = batch;
}

// The values over these buffers: remembered from an earlier run, or made now in place of the oldest.
Binding& binding_for(Session& s, std::uint32_t batch, void* const* data) {
  const std::size_t count = s.inputs.size() + s.outputs.size();
  for (Binding& b : s.bindings) {
    if (b.batch == batch && std::equal(data, data + count, b.data)) return b;
  }
  Binding& b = s.bindings[s.oldest];
  s.oldest = (s.oldest + 1) % s.bindings.size();
  // A graph holds the addresses of the buffers it was captured with: what takes another's place has none.
  b.way = b.batch == 0 ? Binding::Way::untried : Binding::Way::plain;
  bind(s, b, batch, data);
  return b;
}

// Where buffers move: values over the session's own in place of those.
Binding& still_binding(Session& s, std::vector<Binding>& bindings, std::uint32_t batch, void* const* data) {
  Binding& b = bindings.at(batch - 1);
  if (b.batch != 0) return b;
  void* still[2 * kMaxTensors];
  std::size_t next = 0;
  for (std::size_t i = 0; i < s.inputs.size() + s.outputs.size(); ++i)
    still[i] = (i < s.inputs.size() ? s.moves_in : s.moves_out) ? s.still[next++].memory.address : data[i];
  bind(s, b, batch, still);
  return b;
}

void run_binding(Session& s, const Binding& b, const OrtRunOptions* options) {
  check(api().Run(s.session.get(), options, s.input_names.data(), b.inputs, s.inputs.size(), s.output_names.data(),
                  s.outputs.size(), const_cast<OrtValue**>(b.outputs)));
}

void run_on_stand_in(void* argument) {
  const auto& b = *static_cast<Binding*>(argument);
  try {
    run_binding(*b.session, b, nullptr);
    b.session->deferred.ended();
  } catch (const std::exception& e) {
    b.session->deferred.failed(e.what());
  }
}

// What a run pinned on the host (the addresses of a Concat's inputs, say) the provider keeps until a run that is waited
// for, and so every so many runs is. Not where there are graphs: those may hold such addresses, and a replay pins none.
constexpr std::uint32_t kRunsUntilSettled = 256;

const OrtRunOptions* plain_run_options(Session& s) {
  if (s.graphs || ++s.unsettled_runs < kRunsUntilSettled) return s.run_options.get();
  s.unsettled_runs = 0;
  return s.settling_run_options.get();
}

// On the device's stream.
void put(Session& s, Binding& b, bool graph) {
  if (s.provider) return run_binding(s, b, graph ? b.graph_run.get() : plain_run_options(s));
  char error[512] = "";
  const int status =
      graph ? s.device_api->enqueue_graph(s.device, &b.stand_in_graph, run_on_stand_in, &b, error, sizeof error)
            : s.device_api->enqueue(s.device, run_on_stand_in, &b, error, sizeof error);
  if (status != LEAT_DEVICE_OK) throw std::runtime_error(error);
  s.deferred.put();
}

void copy_on_device(const Session& s, void* to, const void* from, std::uint64_t bytes) {
  char error[512] = "";
  if (s.device_api->copy(s.device, to, from, bytes, error, sizeof error) != LEAT_DEVICE_OK)
    throw std::runtime_error(error);
}

// Over b's buffers: where those are others than the caller's, what it reads of the caller's `rows` is copied there
// before, and what it wrote of them from there behind it.
void put_rows(Session& s, Binding& b, std::uint32_t rows, void* const* data, bool graph) {
  const auto bytes = [&](const Port& port) { return (port.batched() ? rows : 1) * port.row_bytes; };
  const std::size_t in = s.inputs.size();
  for (std::size_t i = 0; i < in; ++i)
    if (b.data[i] != data[i]) copy_on_device(s, b.data[i], data[i], bytes(s.inputs[i]));
  put(s, b, graph);
  for (std::size_t o = 0; o < s.outputs.size(); ++o)
    if (b.data[in + o] != data[in + o]) copy_on_device(s, data[in + o], b.data[in + o], bytes(s.outputs[o]));
}

// A run's buffers, as they are given and to the end of their rooms.
struct Given {
  void* data[2 * kMaxTensors] = {};
  std::uint32_t room = UINT32_MAX;  // rows that each has
};

// ONNX Runtime's convolutions remember how they ran for one size alone, and a change costs many times a run. So without
// graphs a provider sees few sizes: the next power of two, with rows of whatever was there, where there is room.
std::uint32_t few_sizes(const Session& s, std::uint32_t rows, const Given& given) {
  if (!s.provider || s.group != 0) return rows;
  const std::uint32_t size = std::min(std::bit_ceil(rows), std::max(s.batch_max, rows));
  return s.still_bindings.empty() && size > given.room ? rows : size;
}

void put_plain(Session& s, std::uint32_t rows, const Given& given) {
  const std::uint32_t size = few_sizes(s, rows, given);
  Binding& b = size == rows || s.still_bindings.empty() ? binding_for(s, size, given.data)
                                                        : still_binding(s, s.still_bindings, size, given.data);
  put_rows(s, b, rows, given.data, false);
}

// Another size than this one's without a graph, whose buffers are there whatever rows it was given; 0: there is none.
std::uint32_t another_size(const Session& s, std::uint32_t rows, const Given& given) {
  if (!s.provider || s.group != 0) return 0;
  const std::uint32_t size = few_sizes(s, rows, given);
  if (size > 1) return size / 2;
  return s.batch_max > 1 && given.room > 1 && !s.moves_in && !s.moves_out ? 2 : 0;
}

// What cannot be captured ends it for all batches, since nothing is known of a session that has failed half-way: it is
// opened anew.
void give_up_graphs(Session& s, const char* why) {
  s.graphs = false;
  s.report.why_not = why;
  (void)s.device_api->end_capture(s.device, nullptr, 0);
  for (GraphTiming& t : s.report.batches) t.graph_ns = 0;
  for (auto* const all : {&s.bindings, &s.graph_bindings})
    for (Binding& other : *all) other.way = Binding::Way::plain;
  s.without_graphs();
}

// A batch's first run: with and without a graph, copies included.
void choose_way(Session& s, Binding& b, std::uint32_t rows, const Given& given) {
  const std::uint32_t other = another_size(s, rows, given);
  const TimedWay plain{[&] { put_plain(s, rows, given); },
                       other != 0 ? std::function<void()>([&] { put_plain(s, other, given); }) : nullptr};
  const TimedWay graph{[&] { put_rows(s, b, rows, given.data, true); }, nullptr};
  GraphTiming timing{.batch = rows};
  try {
    const bool moves = !s.graph_bindings.empty();
    const std::ptrdiff_t at = moves ? &b - s.graph_bindings.data() : &b - s.bindings.data();
    b.graph_run.reset(device_run_options(api(), false, static_cast<int>(at) + 1));
    const TimedWay both[] = {plain, graph};
    const auto times = time_on_device(*s.device_api, s.device, both);
    timing.plain_ns = times[0], timing.graph_ns = times[1];
  } catch (const std::runtime_error& e) {
    give_up_graphs(s, e.what());
    timing.plain_ns = time_on_device(*s.device_api, s.device, {&plain, 1})[0];
  }
  const auto later = std::find_if(s.report.batches.begin(), s.report.batches.end(),
                                  [rows](const GraphTiming& t) { return t.batch > rows; });
  s.report.batches.insert(later, timing);
  b.way = timing.graph() ? Binding::Way::graph : Binding::Way::plain;
}

int finish(leat_session* handle, char* error, size_t error_bytes) {
  const std::string why = of(handle).deferred.oldest();
  return why.empty() ? 0 : executor_error(error, error_bytes, "onnx: " + why);
}

// Every shape is known and every output has its place: the runtime writes there.
bool all_settled(const Session& s, const leat_tensor* outputs) {
  if (s.open_sizes) return false;
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    if (!s.outputs[i].settled || outputs[i].data == nullptr) return false;
  return true;
}

// Says what was written, by what is known of the model.
void tell(const Port& port, std::uint32_t batch, leat_tensor& out) {
  void* const data = out.data;
  const std::uint8_t memory = out.memory;
  out = port.tensor;
  out.data = data;
  out.name = port.name.c_str();
  out.memory = memory;
  if (port.batched()) out.shape[0] = batch;
  out.bytes = (port.batched() ? batch : 1) * port.row_bytes;
}

void put_on_device(Session& s, std::uint32_t rows, const Given& given) {
  if (!s.graphs) return put_plain(s, rows, given);
  const bool moves = !s.graph_bindings.empty();
  Binding& b = moves ? still_binding(s, s.graph_bindings, rows, given.data) : binding_for(s, rows, given.data);
  if (b.way == Binding::Way::untried) choose_way(s, b, rows, given);
  if (b.way == Binding::Way::graph)
    put_rows(s, b, rows, given.data, true);
  else
    put_plain(s, rows, given);
}

int run_settled(Session& s, std::uint32_t batch, const leat_tensor* inputs, leat_tensor* outputs) {
  const std::size_t in = s.inputs.size(), count = in + s.outputs.size();
  const auto port_of = [&](std::size_t i) -> const Port& { return i < in ? s.inputs[i] : s.outputs[i - in]; };
  const std::uint32_t rows = s.group == 0 ? batch : s.group;
  Given given;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = i < in ? inputs[i].bytes : outputs[i - in].bytes;
    if (port_of(i).batched())
      given.room = static_cast<std::uint32_t>(std::min<std::uint64_t>(given.room, bytes / port_of(i).row_bytes));
  }
  void** const data = given.data;
  for (std::uint32_t first = 0; first < batch; first += rows) {
    const std::uint32_t here = std::min(rows, batch - first);
    for (std::size_t i = 0; i < count; ++i) {
      const Port& port = port_of(i);
      auto* const at = static_cast<std::byte*>(i < in ? inputs[i].data : outputs[i - in].data) +
                       (port.batched() ? first * port.row_bytes : 0);
      data[i] = at;
      if (here == rows || !port.batched()) continue;
      if (s.device != nullptr) throw std::runtime_error("the batch must be a multiple of the model's on a device");
      s.staged[i].resize(rows * port.row_bytes);  // once: a group's size does not change
      std::fill(s.staged[i].begin(), s.staged[i].end(), std::byte{0});
      if (i < in) std::memcpy(s.staged[i].data(), at, here * port.row_bytes);
      data[i] = s.staged[i].data();
    }
    if (s.device == nullptr)
      run_binding(s, binding_for(s, rows, data), host_options(s, rows * s.inputs[0].row_bytes));
    else
      put_on_device(s, rows, given);
    for (std::size_t o = 0; o < s.outputs.size() && here < rows; ++o) {
      const Port& port = s.outputs[o];
      if (port.batched())
        std::memcpy(static_cast<std::byte*>(outputs[o].data) + first * port.row_bytes, s.staged[in + o].data(),
                    here * port.row_bytes);
    }
  }
  for (std::size_t o = 0; o < s.outputs.size(); ++o) tell(s.outputs[o], batch, outputs[o]);
  return 0;
}

// Some shape comes with the run, or is known only after it.
int run_open(Session& s, std::uint32_t batch, const leat_tensor* inputs, leat_tensor* outputs, char* error,
             size_t error_bytes) {
  if (s.group != 0 && batch != s.group)
    return executor_error(error, error_bytes,
                          "onnx: this model takes " + std::to_string(s.group) +
                              " items a run, and its outputs' rows are "
                              "known only after it; set batch = " +
                              std::to_string(s.group));
  std::vector<Owned<OrtValue>> values;
  std::uint64_t taken = 0;
  const OrtValue* in[kMaxTensors] = {};
  OrtValue* out[kMaxTensors] = {};
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    const Port& port = s.inputs[i];
    if (inputs[i].rank != port.tensor.rank)
      return executor_error(error, error_bytes, "onnx: input '" + port.name + "' has another rank");
    std::uint64_t bytes = port.element_bytes;
    for (std::uint32_t d = 0; d < inputs[i].rank; ++d) bytes *= static_cast<std::uint64_t>(inputs[i].shape[d]);
    taken += bytes;
    if (bytes > inputs[i].bytes)
      return executor_error(error, error_bytes, "onnx: input '" + port.name + "' is too short");
    values.emplace_back(value_over(s, port, inputs[i].shape, inputs[i].rank, inputs[i].data, bytes));
    in[i] = values.back().get();
  }
  for (std::size_t o = 0; o < s.outputs.size(); ++o) {
    s.lent[o].reset();
    const Port& port = s.outputs[o];
    if (s.open_sizes || !port.settled || outputs[o].data == nullptr) continue;
    values.emplace_back(value_over(s, port, batch, outputs[o].data));
    out[o] = values.back().get();
  }
  check(api().Run(s.session.get(), host_options(s, taken), s.input_names.data(), in, s.inputs.size(),
                  s.output_names.data(), s.outputs.size(), out));
  int code = 0;
  for (std::size_t o = 0; o < s.outputs.size(); ++o) {
    const Port& port = s.outputs[o];
    if (!s.open_sizes && port.settled && outputs[o].data != nullptr) {
      tell(port, batch, outputs[o]);
      continue;
    }
    s.lent[o].reset(out[o]);
    leat_tensor now = port.tensor;
    const std::uint64_t bytes = read_shape(out[o], now), room = outputs[o].bytes;
    now.name = port.name.c_str();
    if (s.open_sizes && now.rank > 0 && now.shape[0] != batch) now.flags |= LEAT_TENSOR_UNBATCHED;
    void* lent = nullptr;
    check(api().GetTensorMutableData(out[o], &lent));
    now.data = outputs[o].data;
    now.bytes = bytes;
    if (now.data == nullptr) {
      now.data = lent;
    } else if (bytes > room) {
      code = executor_error(error, error_bytes,
                            "output '" + port.name + "' has " + std::to_string(bytes) + " bytes, its room is " +
                                std::to_string(room)) +
             LEAT_RUN_TOO_LARGE - 1;
      continue;
    } else if (bytes != 0) {
      std::memcpy(now.data, lent, bytes);
    }
    outputs[o] = now;
  }
  return code;
}

int run_checked(Session& s, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count,
                leat_tensor* outputs, std::uint32_t output_count, char* error, size_t error_bytes) {
  if (input_count != s.inputs.size() || output_count != s.outputs.size())
    return executor_error(error, error_bytes, "onnx: run() was given another number of tensors than the model has");
  const bool settled = all_settled(s, outputs);
  for (std::uint32_t i = 0; i < input_count; ++i) {
    if (inputs[i].bytes < (s.inputs[i].batched() ? batch : 1) * s.inputs[i].row_bytes)
      return executor_error(error, error_bytes, "onnx: input '" + s.inputs[i].name + "' is too short");
  }
  for (std::uint32_t i = 0; i < output_count; ++i) {
    const Port& port = s.outputs[i];
    if (port.settled && outputs[i].data != nullptr && outputs[i].bytes < (port.batched() ? batch : 1) * port.row_bytes)
      return executor_error(error, error_bytes, "onnx: output '" + port.name + "' has too little room");
  }
  try {
    return settled ? run_settled(s, batch, inputs, outputs) : run_open(s, batch, inputs, outputs, error, error_bytes);
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, std::string("onnx: ") + e.what());
  }
}

int run(leat_session* handle, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count,
        leat_tensor* outputs, std::uint32_t output_count, char* error, size_t error_bytes) {
  Session& s = of(handle);
  const int code = run_checked(s, batch, inputs, input_count, outputs, output_count, error, error_bytes);
  s.deferred.run_ends();
  return code;
}

}  // namespace

const GraphReport& onnx_graph_report(const leat_session* session) {
  return reinterpret_cast<const Session*>(session)->report;
}

void onnx_give_back(leat_session* session) noexcept { of(session).largest = 0; }

const leat_executor* onnx_executor() {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "onnx", open, close, describe, run, finish};
  return &kExecutor;
}

}  // namespace leat::exec
