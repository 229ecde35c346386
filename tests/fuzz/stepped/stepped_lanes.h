// See stepped_lanes.cpp. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/daemon/clients/lanes.h"

namespace leat::fuzz {

void work_in_lanes(std::uint32_t steps);  // at most
std::size_t waiting_in_lanes();           // tasks

}  // namespace leat::fuzz
