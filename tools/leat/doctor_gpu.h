// The GPU half of `leat doctor`: what leat-gpu-probe says about partitions and hand-over, as one finding.
#pragma once

#include <string>
#include <string_view>

#include "tools/leat/doctor_checks.h"

namespace leat::tools {

inline constexpr std::string_view kGpuProbeSubject = "GPU probe";

// From the JSON that `leat-gpu-probe --json -` printed (docs/research/gpu-probe.md). A text that is no such report is a
// note.
[[nodiscard]] Finding finding_from_probe(std::string_view report);

// Whether ONNX Runtime's CUDA provider loads, and why not, tried in a process of its own. Nothing runs on a GPU.
[[nodiscard]] Finding cuda_provider();

// Runs `leat-gpu-probe --quick` where there is a GPU: the program that LEAT_GPU_PROBE names, else the one beside this
// program, else the one on PATH. Its progress goes to stderr; it takes up to a few minutes.
[[nodiscard]] Finding gpu_probe();

// By which way features get from one device to another and how fast: what `leat-gpu peers --json` printed, as one
// finding.
[[nodiscard]] Finding finding_from_pairs(std::string_view json);
// Runs it where there is a GPU. Seconds for each ordered pair; no kernel runs.
[[nodiscard]] Finding device_pairs();

}  // namespace leat::tools
