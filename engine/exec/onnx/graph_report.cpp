#include "engine/exec/onnx/graph_report.h"

#include <cstdio>

namespace leat::exec {

std::string text_of(const GraphReport& report) {
  std::string with, without;
  for (const GraphTiming& t : report.batches) {
    if (t.graph_ns == 0 && t.whole_ns == 0) continue;
    const auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e6; };
    char whole[64] = "", graph[64] = "", text[192];
    if (t.whole_ns != 0) (void)std::snprintf(whole, sizeof whole, "%.3g ms in one launch, ", ms(t.whole_ns));
    if (t.graph_ns != 0) (void)std::snprintf(graph, sizeof graph, "%.3g ms by the model's graph, ", ms(t.graph_ns));
    (void)std::snprintf(text, sizeof text, "%u (%s%s%.3g ms without)", t.batch, t.whole() ? whole : graph,
                        t.whole() ? graph : whole, ms(t.plain_ns));
    std::string& list = t.graph() ? with : without;
    list += (list.empty() ? "" : ", ") + std::string(text);
  }
  std::string out = with.empty() ? "" : "CUDA graphs at batch " + with;
  if (!without.empty()) out += (out.empty() ? "no CUDA graph at batch " : "; none at ") + without;
  if (!report.why_not.empty()) out += (out.empty() ? "no CUDA graphs: " : "; no more: ") + report.why_not;
  if (!report.why_apart.empty()) out += (out.empty() ? "" : "; ") + ("none in one launch: " + report.why_apart);
  return out;
}

}  // namespace leat::exec
