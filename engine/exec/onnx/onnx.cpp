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
// extra: optimization=off|basic|extended|all (default all); unbatched=1; on a device graphs=0|model|1 (default 1: a
// batch runs as a CUDA graph where that was measured faster; model: the runtime's own graphs alone), and, which the
// module says of itself, fixed_buffers=1, or moving_inputs=1 and moving_outputs=1: graphs are then captured over
// buffers of the session's, and copied to and from; cuts=NAME<tab>NAME...: the tensors that the model's blocks meet at
// (a profile's `cuts`), needed where a block range is less than the model.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/onnx/onnx_session.h"
#include "engine/exec/onnx/onnx_ways.h"

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

int run_settled(Session& s, std::uint32_t batch, const leat_tensor* inputs, leat_tensor* outputs, Around* around) {
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
  const bool one = rows == batch;  // else what is around the batch is around the first run and the last
  if (!one) put_before(around);
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
      put_on_device(s, rows, given, one ? around : nullptr);
    for (std::size_t o = 0; o < s.outputs.size() && here < rows; ++o) {
      const Port& port = s.outputs[o];
      if (port.batched())
        std::memcpy(static_cast<std::byte*>(outputs[o].data) + first * port.row_bytes, s.staged[in + o].data(),
                    here * port.row_bytes);
    }
  }
  if (!one) put_behind(around);
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
                leat_tensor* outputs, std::uint32_t output_count, Around* around, char* error, size_t error_bytes) {
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
    return settled ? run_settled(s, batch, inputs, outputs, around)
                   : run_open(s, batch, inputs, outputs, error, error_bytes);
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, std::string("onnx: ") + e.what());
  }
}

int run_within(Session& s, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count,
               leat_tensor* outputs, std::uint32_t output_count, Around* around, char* error, size_t error_bytes) {
  const int code = run_checked(s, batch, inputs, input_count, outputs, output_count, around, error, error_bytes);
  s.deferred.run_ends();
  return code;
}

int run(leat_session* handle, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count,
        leat_tensor* outputs, std::uint32_t output_count, char* error, size_t error_bytes) {
  return run_within(of(handle), batch, inputs, input_count, outputs, output_count, nullptr, error, error_bytes);
}

}  // namespace

const GraphReport& onnx_graph_report(const leat_session* session) {
  return reinterpret_cast<const Session*>(session)->report;
}

int onnx_run(leat_session* session, std::uint32_t batch, std::span<const leat_tensor> inputs,
             std::span<leat_tensor> outputs, Around& around, std::span<char> error) noexcept {
  return run_within(of(session), batch, inputs.data(), static_cast<std::uint32_t>(inputs.size()), outputs.data(),
                    static_cast<std::uint32_t>(outputs.size()), &around, error.data(), error.size());
}

void onnx_give_back(leat_session* session) noexcept { of(session).largest = 0; }

const leat_executor* onnx_executor() {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "onnx", open, close, describe, run, finish};
  return &kExecutor;
}

}  // namespace leat::exec
