// Work that is captured once and replayed, and the device's own time.
#include "cuda/device/device.h"

namespace leat::cuda {

GraphRun Device::capture(void (*function)(void*), void* argument) {
  check("cuStreamBeginCapture", cuda_->capture_begin(stream_, kCaptureOfThread));
  Graph graph = nullptr;
  GraphRun out = nullptr;
  const Status put = cuda_->host_function(stream_, function, argument);
  const Status ended = cuda_->capture_end(stream_, &graph);  // whatever went wrong: the stream is free again
  const Status made = put == kSuccess && ended == kSuccess ? cuda_->graph_instantiate(&out, graph, 0) : kSuccess;
  if (graph != nullptr) (void)cuda_->graph_destroy(graph);
  check("cuLaunchHostFunc", put);
  check("cuStreamEndCapture", ended);
  check("cuGraphInstantiate", made);
  return out;
}

void Device::enqueue_graph(std::uint32_t& graph, void (*function)(void*), void* argument) {
  if (graph > graphs_.size()) throw Failed(LEAT_DEVICE_FAILED, "there is no graph of this name");
  if (graph == 0) {
    graphs_.push_back(capture(function, argument));
    graph = static_cast<std::uint32_t>(graphs_.size());
  }
  check("cuGraphLaunch", cuda_->graph_launch(graphs_[graph - 1], stream_));
}

void Device::end_capture() noexcept {
  Graph graph = nullptr;
  (void)cuda_->capture_end(stream_, &graph);  // refused where nothing is being captured
  if (graph != nullptr) (void)cuda_->graph_destroy(graph);
}

void Device::release_graphs() noexcept {
  for (const GraphRun run : graphs_) (void)cuda_->graph_run_destroy(run);
}

void Device::stamp(std::uint32_t which) { check("cuEventRecord", cuda_->event_record(stamps_[which & 1], stream_)); }

std::uint64_t Device::elapsed_ns() const {
  float milliseconds = 0;
  check("cuEventElapsedTime", cuda_->event_elapsed(&milliseconds, stamps_[0], stamps_[1]));
  return static_cast<std::uint64_t>(milliseconds > 0 ? static_cast<double>(milliseconds) * 1e6 : 0);
}

}  // namespace leat::cuda
