#include "engine/daemon/workers/worker_binary.h"

#include "tools/base/subprocess/program.h"

namespace leat::daemon {

std::string find_worker() {
  return subprocess::near_this_program("leat-worker", {"", "../worker", "../../engine/worker"});
}

}  // namespace leat::daemon
