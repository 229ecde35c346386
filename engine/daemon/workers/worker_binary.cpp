#include "engine/daemon/workers/worker_binary.h"

#include <unistd.h>

#include <filesystem>

namespace leat::daemon {

std::string find_worker() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& candidate :
       {here / "leat-worker", here / "../worker/leat-worker", here / "../../engine/worker/leat-worker"})
    if (access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  return (here / "leat-worker").string();
}

}  // namespace leat::daemon
