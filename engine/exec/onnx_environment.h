// ONNX Runtime's environment, of which a process has one.
#pragma once

#include <onnxruntime_c_api.h>

namespace leat::exec {

// OrtApi::CreateEnv with telemetry's events off, and without the lines that Debian 13's library writes to standard
// error about every operator it knows, because it registers each of them twice. The caller releases status and
// environment. It exchanges the buffer of std::cerr for the time of the call: control plane, while no other thread
// writes there.
OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment);

}  // namespace leat::exec
