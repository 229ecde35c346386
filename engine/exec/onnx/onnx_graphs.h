// Whether a batch runs as a CUDA graph, and as which: measured where the batch is first run, by the device's own time,
// in turns with the same batch without one, and that behind a batch of another size, as it comes in service: ONNX
// Runtime's convolutions forget how they ran when the size changes, which no graph does. There are two graphs. One is
// the model's, which ONNX Runtime captures and replays (enable_cuda_graph, gpu_graph_id). The other is captured by us,
// around a plain run in the same session: the batch's pictures, the model and its downloads, one launch. What is
// compared is the whole batch in each of the three ways. A graph holds the addresses it was captured with: where a
// run's buffers stay where they are (extra fixed_buffers=1), those; where they are rows that move from run to run
// (moving_inputs=1, moving_outputs=1), buffers of the session's own, and the copies to and from them, which no graph
// holds, are part of what is measured. Otherwise none is asked. Thread rule: the session's. Errors: what cannot be
// captured runs without, and why_not or why_apart says why, in one line.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/exec/device.h"
#include "engine/exec/onnx/around.h"
#include "engine/exec/onnx/graph_report.h"
#include "leat/executor.h"

namespace leat::exec {

// Of an `onnx` session (registry.h: onnx_executor()), as far as its batches have run.
const GraphReport& onnx_graph_report(const leat_session* session);
// Its run(), with what is around it on the device's stream, which a session on a device puts there.
int onnx_run(leat_session* session, std::uint32_t batch, std::span<const leat_tensor> inputs,
             std::span<leat_tensor> outputs, Around& around, std::span<char> error) noexcept;

// One way to run a batch. `run` puts it on the stream, `before`, where there is one, what precedes it uncounted; both
// throw where they cannot.
struct TimedWay {
  std::function<void()> run, before;
};
// The median of some runs of each way, in turns, so that a clock that rises or a neighbour is not one way's alone;
// after one that is not counted, each between two stamps of the device. A way that is much slower than another takes
// fewer turns. Throws std::runtime_error with the device's line.
std::vector<std::uint64_t> time_on_device(const leat_device_api& api, leat_device* device,
                                          std::span<const TimedWay> ways);

}  // namespace leat::exec
