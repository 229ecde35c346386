#include "engine/exec/onnx/graph_report.h"

#include <cstdio>

namespace leat::exec {

std::string text_of(const GraphReport& report) {
  std::string with, without;
  for (const GraphTiming& t : report.batches) {
    if (t.graph_ns == 0) continue;
    char text[96];
    (void)std::snprintf(text, sizeof text, "%u (%.3g ms against %.3g without)", t.batch,
                        static_cast<double>(t.graph_ns) / 1e6, static_cast<double>(t.plain_ns) / 1e6);
    std::string& list = t.graph() ? with : without;
    list += (list.empty() ? "" : ", ") + std::string(text);
  }
  std::string out = with.empty() ? "" : "CUDA graphs at batch " + with;
  if (!without.empty()) out += (out.empty() ? "no CUDA graph at batch " : "; none at ") + without;
  if (!report.why_not.empty()) out += (out.empty() ? "no CUDA graphs: " : "; no more: ") + report.why_not;
  return out;
}

}  // namespace leat::exec
