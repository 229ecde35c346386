#include "engine/daemon/workers/self_guard.h"

#include <sys/resource.h>
#include <unistd.h>

#include "engine/daemon/log.h"
#include "engine/worker/sandbox/confine.h"

namespace leat::daemon {

bool workers_are_root(const Config& config) noexcept { return geteuid() == 0 && config.workers.user.empty(); }

void guard_itself(const Config& config) {
  worker::become_opaque(config.workers.sandbox);
  if (workers_are_root(config))
    log_warning(
        "workers run as root: whoever takes one over by a model or a plug-in has what root has left it; make a user "
        "for them (useradd --system leat-worker) and name it: [workers] user = \"leat-worker\"");
}

void raise_open_files() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace leat::daemon
