// NVIDIA's MPS control daemon, in the foreground as this process's child, with its pipes and log in a private
// directory. If this process is killed, the kernel sends the daemon SIGTERM. The caller has adopted orphans
// (tools/base/subprocess/descendants.h), so that the servers the daemon forks are found however they detach. Thread
// rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/base/subprocess/process.h"

namespace leat::gpu {

using subprocess::Environment;

struct DaemonOptions {
  std::string program;                 // nvidia-cuda-mps-control, found by the caller
  std::vector<std::string> arguments;  // besides -f
  Environment environment;             // besides the two directories
};

// CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY of a daemon with this directory.
[[nodiscard]] Environment mps_environment(const std::string& directory);

class MpsDaemon {
 public:
  explicit MpsDaemon(std::string directory) : directory_(std::move(directory)) {}
  // It is up when its control socket exists. The error holds the daemon's own last words.
  Status start(const DaemonOptions& options);
  Status stop();  // asks, then insists; whatever it forked goes too
  // How it ended without having been asked; told once.
  [[nodiscard]] std::optional<subprocess::Ending> ended() { return process_.ended(); }

 private:
  Status wait_until_up();

  std::string directory_, program_;
  subprocess::Process process_;
};

}  // namespace leat::gpu
