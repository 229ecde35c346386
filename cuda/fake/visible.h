// What a process of the stand-in driver may see of the host's devices.
#pragma once

#include <vector>

#include "cuda/fake/state.h"

namespace leat::fake {

struct Visible {
  unsigned gpu = 0, instance = kWhole, compute = kWhole;
};

// By CUDA_VISIBLE_DEVICES, as the driver reads it: UUIDs or ordinals; nothing after a wrong one. Any thread.
std::vector<Visible> visible_devices();

}  // namespace leat::fake
