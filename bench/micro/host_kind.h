// On which kind of host a figure was measured: processors differ more than releases of this project do.
#pragma once

#include <cstdint>
#include <string>

namespace leat::bench {

struct HostKind {
  std::string processor;    // "AMD EPYC"; "unknown processor" where the kernel does not say
  std::uint32_t cores = 0;  // that this process may use
  std::string caches;       // of one of them: "L1d 48 KiB, L2 1 MiB, L3 32 MiB (2 share it)"
};
HostKind host_kind();

}  // namespace leat::bench
