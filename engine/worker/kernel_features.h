// What a kernel offers against processes that turn against each other, where an older one (Debian 12's 6.1) has to be
// served otherwise. LEAT_OLD_KERNEL=1 in the environment, read once a process, makes every answer "absent": so that
// the other way is tested on a new kernel too. Thread rule: none; each answer is found out once.
#pragma once

#include "leat/result.hpp"

namespace leat::worker {

// 0: the kernel has no Landlock, or it was not switched on at boot. 1 to 5: paths and devices; from 6 on (Linux 6.12)
// signals too.
[[nodiscard]] int landlock_abi() noexcept;

// From now on nobody can pass descriptors to this socket's owner, so that none is closed in its name: whoever tries is
// refused (Linux 6.16). False: the kernel cannot; descriptors come through, or are dropped when nobody expects them.
bool refuse_descriptors(int socket) noexcept;

}  // namespace leat::worker
