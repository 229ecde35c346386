// A session of the `onnx` executor: what it holds, and how it is opened: the model's inputs and outputs, which of their
// dimensions is the batch, and which shapes are known beforehand (onnx.cpp says the rules; it describes and runs).
// Thread rule: a session's. Errors: exceptions, which onnx.cpp turns into lines.
#pragma once

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/onnx/deferred_runs.h"
#include "engine/exec/onnx/libraries/onnx_library.h"
#include "engine/exec/onnx/libraries/onnx_status.h"
#include "engine/exec/onnx/onnx_device.h"
#include "engine/exec/onnx/onnx_graphs.h"
#include "engine/exec/registry.h"

namespace leat::exec::ort {

constexpr std::size_t kMaxTensors = 16;   // inputs, and outputs
constexpr std::size_t kMaxBindings = 64;  // sets of buffers remembered, so that a run builds nothing

inline const OrtApi& api() { return *onnx_library().value().api; }

// A line that names the file already.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

// Throws with ONNX Runtime's own words. Control plane.
inline void check(OrtStatus* status) { exec::check(api(), status); }

template <class T>
struct Releaser;
#define LEAT_ORT(TYPE)                                                       \
  template <>                                                                \
  struct Releaser<Ort##TYPE> {                                               \
    void operator()(Ort##TYPE* p) const noexcept { api().Release##TYPE(p); } \
  };
LEAT_ORT(Allocator)
LEAT_ORT(Session)
LEAT_ORT(SessionOptions)
LEAT_ORT(MemoryInfo)
LEAT_ORT(Value)
LEAT_ORT(TypeInfo)
LEAT_ORT(TensorTypeAndShapeInfo)
LEAT_ORT(RunOptions)
LEAT_ORT(ArenaCfg)
#undef LEAT_ORT
template <class T>
using Owned = std::unique_ptr<T, Releaser<T>>;

struct Port {
  std::string name;
  leat_tensor tensor{};  // shape as the model declares it; outputs: as the last run had it, where that is known
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::uint32_t element_bytes = 0;
  std::uint64_t row_bytes = 0;  // of one item; 0: a dimension is open
  bool settled = false;  // outputs: every run so far had this shape, so it can be given to the runtime beforehand

  [[nodiscard]] bool batched() const { return (tensor.flags & LEAT_TENSOR_UNBATCHED) == 0; }
};

// Values over one set of buffers at one batch. On a stand-in's stream, where host code plays the model's part, it is
// what a run is given.
struct Session;
struct Binding {
  Session* session = nullptr;
  std::uint32_t batch = 0;
  enum class Way : std::uint8_t { untried, plain, graph, whole } way = Way::untried;
  std::uint32_t stand_in_graph = 0;                     // on a stand-in's stream: what the runtime's graph would be
  std::array<std::uint32_t, LEAT_DEVICE_SETS> whole{};  // the device's graph of a batch of each set; 0: none
  Owned<OrtRunOptions> graph_run;
  void* data[2 * kMaxTensors] = {};
  std::vector<Owned<OrtValue>> values;  // inputs, then outputs
  const OrtValue* inputs[kMaxTensors] = {};
  OrtValue* outputs[kMaxTensors] = {};
};

// Behind the handle that executor.h calls a leat_session. That name belongs to no executor: two types of it in one
// program would be one type to the linker.
struct Session {
  Session() = default;
  ~Session() { let_go(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // The runtime's session ends, not before the stream has. As it ends it puts there what gives its runs' pinned memory
  // back, which as the last to hold that memory would free it where no call to CUDA is allowed, and so end the process:
  // `pinned` outlives it.
  void let_go() noexcept {
    const bool puts_last = session && device != nullptr;
    if (puts_last) (void)device_api->wait(device, nullptr, 0);
    for (auto* const all : {&bindings, &graph_bindings})
      for (Binding& b : *all) release_graphs(b);
    session.reset();
    if (puts_last) (void)device_api->wait(device, nullptr, 0);
    pinned.reset();
  }
  // Nothing of them is on the stream. They hold addresses of the runtime's memory.
  void release_whole(Binding& b) const noexcept {
    for (std::uint32_t& graph : b.whole)
      if (const std::uint32_t name = std::exchange(graph, 0); name != 0) device_api->release_graph(device, name);
  }
  void release_graphs(Binding& b) const noexcept {
    release_whole(b);
    if (const std::uint32_t name = std::exchange(b.stand_in_graph, 0); name != 0)
      device_api->release_graph(device, name);
  }

  std::unique_ptr<Placements> placements;  // of a provider's session, which logs to it
  Owned<OrtAllocator> pinned;              // a provider's, of host memory
  Owned<OrtSession> session;
  Owned<OrtMemoryInfo> memory;
  std::vector<Port> inputs, outputs;
  std::vector<const char*> input_names, output_names;
  std::vector<Binding> bindings;
  std::vector<Owned<OrtValue>> lent;           // [output] until the next run
  std::vector<std::vector<std::byte>> staged;  // a last group's inputs and outputs, filled up
  std::size_t oldest = 0;                      // binding to be replaced next
  std::uint32_t group = 0;                     // items of one run: 0 as many as are asked for
  bool open_sizes = false;                     // an input's shape comes with each run
  std::uint32_t batch_max = 1;
  std::uint64_t largest = 0;        // bytes that a run has taken since memory was given back
  Owned<OrtRunOptions> gives_back;  // of a run behind which the arena holds nothing that no run uses
  // On a device.
  const leat_device_api* device_api = nullptr;
  leat_device* device = nullptr;
  bool provider = false;  // ONNX Runtime computes there; else a stand-in's stream runs the host's code
  Owned<OrtRunOptions> run_options, settling_run_options;
  std::uint32_t unsettled_runs = 0;          // since the provider last gave back what its runs had pinned
  bool graphs = false;                       // a batch that has not run yet is tried as a graph
  bool at_once = false;                      // and, with what is around its run, as one launch
  bool moves_in = false, moves_out = false;  // a run's buffers are others than the one's before
  std::vector<DeviceRow> still;              // [input, then output] that moves: buffers that a graph is captured over
  std::vector<Binding> graph_bindings;       // [batch - 1] over those
  std::vector<Binding> still_bindings;       // [batch - 1] over those, for runs without a graph
  GraphReport report;
  std::function<void(bool graphs)> open_again;  // the session anew
  DeferredRuns deferred;                        // on a stand-in's stream
};

OrtValue* value_over(const Session& s, const Port& port, const std::int64_t* shape, std::uint32_t rank, void* data,
                     std::uint64_t bytes);
OrtValue* value_over(const Session& s, const Port& port, std::uint32_t batch, void* data);
// The shape that a run gave an output. Its bytes.
std::uint64_t read_shape(const OrtValue* value, leat_tensor& into);
// Throws Refused where the line names the file already, std::runtime_error else.
void open_session(const leat_session_options& o, Session& s);
// On a host: of a run that takes so much. A larger one than before would leave the memory of those behind, in pieces
// too small for it; so all is given back, and the next takes what it needs as one piece.
const OrtRunOptions* host_options(Session& s, std::uint64_t bytes);

}  // namespace leat::exec::ort
