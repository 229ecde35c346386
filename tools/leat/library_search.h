// Looks for the libraries Leat loads at run time, without keeping them loaded.
#pragma once

#include <string>

namespace leat::tools {

struct OnnxRuntimeFound {
  std::string path, version;  // empty version: not found
  std::string problem;        // the loader's words
};
[[nodiscard]] OnnxRuntimeFound find_onnx_runtime();

struct GpuFound {
  unsigned count = 0;
  std::string names;  // separated by ", "
  std::string driver;
  std::string problem;       // why none was found
  std::string cuda_problem;  // GPUs are there, but CUDA cannot be used
};
[[nodiscard]] GpuFound find_gpus();

}  // namespace leat::tools
