// Work that is captured once and replayed, and the device's own time.
#include <algorithm>
#include <utility>

#include "cuda/device/device.h"

namespace leat::cuda {

// Of this thread: a call that would spoil the capture fails at once and by itself.
void Device::begin_capture() { check("cuStreamBeginCapture", cuda_->capture_begin(stream_, kCaptureOfThread)); }

std::uint32_t Device::end_capture() {
  Graph graph = nullptr;
  GraphRun run = nullptr;
  const Status ended = cuda_->capture_end(stream_, &graph);  // whatever went wrong: the stream is free again
  const Status made = ended == kSuccess ? cuda_->graph_instantiate(&run, graph, 0) : kSuccess;
  if (graph != nullptr) (void)cuda_->graph_destroy(graph);
  check("cuStreamEndCapture", ended);
  check("cuGraphInstantiate", made);
  const auto place = std::find(graphs_.begin(), graphs_.end(), nullptr);
  const auto name = static_cast<std::uint32_t>(place - graphs_.begin()) + 1;
  if (place == graphs_.end())
    graphs_.push_back(run);
  else
    *place = run;
  return name;
}

void Device::drop_capture() noexcept {
  Graph graph = nullptr;
  (void)cuda_->capture_end(stream_, &graph);  // refused where nothing is being captured
  if (graph != nullptr) (void)cuda_->graph_destroy(graph);
}

void Device::launch(std::uint32_t graph) {
  if (graph == 0 || graph > graphs_.size() || graphs_[graph - 1] == nullptr)
    throw Failed(LEAT_DEVICE_FAILED, "there is no graph of this name");
  check("cuGraphLaunch", cuda_->graph_launch(graphs_[graph - 1], stream_));
}

void Device::release_graph(std::uint32_t graph) noexcept {
  if (graph == 0 || graph > graphs_.size()) return;
  if (const GraphRun run = std::exchange(graphs_[graph - 1], nullptr); run != nullptr)
    (void)cuda_->graph_run_destroy(run);
}

void Device::stamp(std::uint32_t which) { check("cuEventRecord", cuda_->event_record(stamps_[which & 1], stream_)); }

std::uint64_t Device::elapsed_ns() const {
  float milliseconds = 0;
  check("cuEventElapsedTime", cuda_->event_elapsed(&milliseconds, stamps_[0], stamps_[1]));
  return static_cast<std::uint64_t>(milliseconds > 0 ? static_cast<double>(milliseconds) * 1e6 : 0);
}

}  // namespace leat::cuda
