// Numbers between two bounds, for drawn workloads: the same on every machine, which std::uniform_real_distribution does
// not promise.
#pragma once

#include <random>

namespace leat::planner {

inline double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1.0p-53;
}

}  // namespace leat::planner
