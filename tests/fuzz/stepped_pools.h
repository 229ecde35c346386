// See stepped_pools.cpp. Thread rule: one thread.
#pragma once

#include <cstdint>

#include "engine/daemon/pool_builder.h"

namespace leat::fuzz {

void let_pools_work(std::uint32_t jobs);  // from now on, at most

}  // namespace leat::fuzz
