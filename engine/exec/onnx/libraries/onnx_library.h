// ONNX Runtime, loaded at run time, so that one binary serves every library from 1.21 on. Looked for in this order:
// $ONNXRUNTIME_ROOT/lib, lib/leat beside an installed bin, deps/onnxruntime/lib of the build folder that the program
// lies in, then where the loader looks. No path of the machine that built the program is kept in it. Its telemetry is
// switched off before it is loaded. Control plane; any thread; stays loaded until the process ends.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"

struct OrtApi;

namespace leat::exec {

struct OnnxLibrary {
  const OrtApi* api = nullptr;
  std::string path, version;
};

// The same answer every time. Error: where it was looked for, the loader's reason, and what to do.
const Result<OnnxLibrary>& onnx_library();

// The paths tried, first to last.
std::vector<std::string> onnx_library_candidates();

}  // namespace leat::exec
