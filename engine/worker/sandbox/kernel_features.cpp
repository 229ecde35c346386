#include "engine/worker/sandbox/kernel_features.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "shm/src/protocol/kernel_features.h"

namespace leat::worker {

int landlock_abi() noexcept {
  static const int kAbi = [] {
    if (shm::told_old_kernel()) return 0;
    const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return static_cast<int>(std::max<long>(0, abi));
  }();
  return kAbi;
}

}  // namespace leat::worker
