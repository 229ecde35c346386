// Which batches of a session run as CUDA graphs, and by what times that was chosen (onnx_graphs.h). Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::exec {

struct GraphTiming {
  std::uint32_t batch = 0;
  // Medians, of the whole batch; 0: it could not be captured. graph_ns: by the model's graph. whole_ns: as one launch.
  std::uint64_t plain_ns = 0, graph_ns = 0, whole_ns = 0;
  [[nodiscard]] bool whole() const noexcept {
    return whole_ns != 0 && whole_ns < plain_ns && (graph_ns == 0 || whole_ns <= graph_ns);
  }
  [[nodiscard]] bool graph() const noexcept { return whole() || (graph_ns != 0 && graph_ns < plain_ns); }
  bool operator==(const GraphTiming&) const = default;
};

struct GraphReport {
  std::vector<GraphTiming> batches;
  std::string why_not;    // no batch is captured, or none is any more; empty: nothing went wrong
  std::string why_apart;  // the same of batches as one launch
  bool operator==(const GraphReport&) const = default;
};

// "CUDA graphs at batch 1 (0.39 ms in one launch, 0.41 by the model's graph, 0.63 without); none at 8 (...)", or why
// there are none; empty: none was asked for. What is named first is what is done.
std::string text_of(const GraphReport& report);

}  // namespace leat::exec
