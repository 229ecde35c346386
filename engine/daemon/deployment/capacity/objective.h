// What an application's requests need on an idle host, by the latencies in force; and the objective that leatd sets
// where the configuration leaves it open (slo_ms = "auto"). Control thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"

namespace leat::daemon {

// Along the longest way through its modules, each on its fastest route, a request alone. The deployment's plan is
// complete.
struct Need {
  std::int64_t least_ns = 0;    // with the smallest pictures, where they vary in size
  std::int64_t largest_ns = 0;  // with the largest
};
[[nodiscard]] Need need_of(const Deployment& deployment, std::uint32_t application);

// Three times as long, rounded up to two places that read well; at least 100 ms.
[[nodiscard]] std::int64_t objective_for(std::int64_t need_ns) noexcept;

// Sets what was left open, in both; a line for each, or, where this was done before, for each that is another now.
std::vector<std::string> choose_objectives(Config& config, Deployment& deployment, bool again = false);

}  // namespace leat::daemon
