// ONNX Runtime's environment, of which a process has one, and what one release of it says about itself.
#pragma once

#include <onnxruntime_c_api.h>

#include <mutex>
#include <sstream>

namespace leat::exec {

// OrtApi::CreateEnv with telemetry's events off. The caller releases status and environment.
OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment);

// While the process's first one lives, the lines are kept back that Debian 13's library writes to std::cerr about every
// operator it knows, because it registers each of them twice when the first model is opened. Whatever else comes there
// is passed on at the end. Threads that open a model meanwhile wait for its end; later ones do nothing.
class WithoutRegistrations {
 public:
  WithoutRegistrations();
  ~WithoutRegistrations();
  WithoutRegistrations(const WithoutRegistrations&) = delete;
  WithoutRegistrations& operator=(const WithoutRegistrations&) = delete;

 private:
  std::unique_lock<std::mutex> first_;
  std::ostringstream said_;
  std::streambuf* before_ = nullptr;
};

}  // namespace leat::exec
