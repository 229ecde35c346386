// What the control thread's event loop reports by which token.
#pragma once

#include <cstdint>

namespace leat::daemon {

inline constexpr std::uint64_t kListenerToken = 0, kSignalsToken = 1, kSchedulerToken = 2, kPoolsToken = 3,
                               kChangesToken = 4;
inline constexpr std::uint64_t kFirstWorkerToken = 2000;  // sockets and outputs of 128 partitions at most
inline constexpr std::uint64_t kFirstSessionToken = 3000;

}  // namespace leat::daemon
