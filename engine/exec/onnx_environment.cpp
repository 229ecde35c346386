#include "engine/exec/onnx_environment.h"

#include <iostream>
#include <sstream>
#include <string>

namespace leat::exec {

OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment) {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  OrtStatus* status = api.CreateEnv(level, "leat", environment);
  if (status == nullptr) status = api.DisableTelemetryEvents(*environment);
  std::cerr.rdbuf(before);
  std::istringstream lines(said.str());
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("Schema error: ")) std::cerr << line << '\n';
  return status;
}

}  // namespace leat::exec
