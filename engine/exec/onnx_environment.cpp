#include "engine/exec/onnx_environment.h"

#include <string>

namespace leat::exec {

OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment) {
  OrtStatus* status = api.CreateEnv(level, "leat", environment);
  return status == nullptr ? api.DisableTelemetryEvents(*environment) : status;
}

WithoutRegistrations::~WithoutRegistrations() {
  std::cerr.rdbuf(before_);
  std::istringstream lines(said_.str());
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("Schema error: ")) std::cerr << line << '\n';
}

}  // namespace leat::exec
