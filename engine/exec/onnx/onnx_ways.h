// The ways in which a batch gets onto a device's stream, and which of them is taken (onnx_graphs.h says by what times):
// plain; with ONNX Runtime's own graph of the model; or as one launch, a graph of ours that holds pictures, model and
// downloads. Thread rule: the session's. Errors: exceptions with one line.
#pragma once

#include <cstdint>

#include "engine/exec/onnx/around.h"
#include "engine/exec/onnx/onnx_session.h"

namespace leat::exec::ort {

// A run's buffers, as they are given and to the end of their rooms.
struct Given {
  void* data[2 * kMaxTensors] = {};
  std::uint32_t room = UINT32_MAX;  // rows that each has
};

// The values over these buffers: remembered from an earlier run, or made now in place of the oldest.
Binding& binding_for(Session& s, std::uint32_t batch, void* const* data);
void run_binding(Session& s, const Binding& b, const OrtRunOptions* options);

// around: null where the run is a part of its batch alone.
void put_on_device(Session& s, std::uint32_t rows, const Given& given, Around* around);
void put_before(Around* around);
void put_behind(Around* around);

}  // namespace leat::exec::ort
