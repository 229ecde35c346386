// ONNX Runtime's environment, of which a process has one, and what one release of it says about itself.
#pragma once

#include <onnxruntime_c_api.h>

#include <iostream>
#include <sstream>

namespace leat::exec {

// OrtApi::CreateEnv with telemetry's events off. The caller releases status and environment.
OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment);

// While one lives, the lines are kept back that Debian 13's library writes to std::cerr about every operator it knows,
// because it registers each of them twice when the first model is opened. Whatever else comes there is passed on at the
// end. Control plane, while no other thread writes to std::cerr.
class WithoutRegistrations {
 public:
  WithoutRegistrations() : before_(std::cerr.rdbuf(said_.rdbuf())) {}
  ~WithoutRegistrations();
  WithoutRegistrations(const WithoutRegistrations&) = delete;
  WithoutRegistrations& operator=(const WithoutRegistrations&) = delete;

 private:
  std::ostringstream said_;
  std::streambuf* before_;
};

}  // namespace leat::exec
