// Whether a batch runs as a CUDA graph: measured where the batch is first run, by the device's own time, against the
// same batch without one. ONNX Runtime captures and replays (enable_cuda_graph, gpu_graph_id); a graph holds the
// addresses it was captured with: where a run's buffers stay where they are (extra fixed_buffers=1), those; where they
// are rows that move from run to run (moving_inputs=1, moving_outputs=1), buffers of the session's own, and the copies
// to and from them are part of what is measured. Otherwise none is asked.
// Thread rule: the session's. Errors: what cannot be captured runs without, and why_not says why, in one line.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/exec/device.h"
#include "engine/exec/onnx/graph_report.h"

struct leat_session;

namespace leat::exec {

// Of an `onnx` session (registry.h: onnx_executor()), as far as its batches have run.
const GraphReport& onnx_graph_report(const leat_session* session);

// The median of some runs after one that is not counted, each between two stamps of the device. `run` puts one run on
// the stream and throws where it cannot. Throws std::runtime_error with the device's line.
std::uint64_t time_on_device(const leat_device_api& api, leat_device* device, const std::function<void()>& run);

}  // namespace leat::exec
