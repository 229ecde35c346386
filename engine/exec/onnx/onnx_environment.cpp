#include "engine/exec/onnx/onnx_environment.h"

#include <atomic>
#include <iostream>
#include <string>

namespace leat::exec {
namespace {

std::mutex opening;
std::atomic<bool> registered = false;

}  // namespace

OrtStatus* create_environment(const OrtApi& api, OrtLoggingLevel level, OrtEnv** environment) {
  OrtStatus* status = api.CreateEnv(level, "leat", environment);
  return status == nullptr ? api.DisableTelemetryEvents(*environment) : status;
}

WithoutRegistrations::WithoutRegistrations() {
  if (registered) return;
  first_ = std::unique_lock(opening);
  if (registered)
    first_.unlock();
  else
    before_ = std::cerr.rdbuf(said_.rdbuf());
}

WithoutRegistrations::~WithoutRegistrations() {
  if (before_ == nullptr) return;
  std::cerr.rdbuf(before_);
  registered = true;
  std::istringstream lines(said_.str());
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("Schema error: ")) std::cerr << line << '\n';
}

}  // namespace leat::exec
