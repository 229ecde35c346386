// How many cores this process may run on, by its affinity mask alone: for those who must not depend on hwloc.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

namespace leat {

inline std::uint32_t core_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace leat
