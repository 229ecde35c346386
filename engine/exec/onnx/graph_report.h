// Which batches of a session run as CUDA graphs, and by what times that was chosen (onnx_graphs.h). Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::exec {

struct GraphTiming {
  std::uint32_t batch = 0;
  std::uint64_t plain_ns = 0, graph_ns = 0;  // medians; graph_ns 0: it could not be captured
  [[nodiscard]] bool graph() const noexcept { return graph_ns != 0 && graph_ns < plain_ns; }
  bool operator==(const GraphTiming&) const = default;
};

struct GraphReport {
  std::vector<GraphTiming> batches;
  std::string why_not;  // no batch is captured, or none is any more; empty: nothing went wrong
  bool operator==(const GraphReport&) const = default;
};

// "CUDA graphs at batch 1 (0.41 ms against 0.63 without); none at 8 (...)", or why there are none; empty: none was
// asked for.
std::string text_of(const GraphReport& report);

}  // namespace leat::exec
