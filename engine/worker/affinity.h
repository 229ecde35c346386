// Cores of this host, by hwloc, and pinning to them. Control plane; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/build/cpu_host.h"

namespace leat::worker {

using planner::usable_cores;

// Pins the whole process (thread: false) or the calling thread to `cores` (operating-system numbers).
Status pin_process(std::span<const std::uint32_t> cores);
Status pin_thread(std::span<const std::uint32_t> cores);

// "0-2,5" -> {0,1,2,5}. An error names the text that is wrong.
Result<std::vector<std::uint32_t>> parse_cores(const std::string& text);
std::string cores_text(std::span<const std::uint32_t> cores);  // the inverse

}  // namespace leat::worker
