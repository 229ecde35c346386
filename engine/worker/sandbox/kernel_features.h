// What a kernel offers against processes that turn against each other (see shm/src/protocol/kernel_features.h for the
// rest, and for LEAT_OLD_KERNEL).
#pragma once

namespace leat::worker {

// 0: the kernel has no Landlock, or it was not switched on at boot. 1 to 5: paths and devices; from 6 on (Linux 6.12)
// signals too. Found out once; any thread.
[[nodiscard]] int landlock_abi() noexcept;

}  // namespace leat::worker
