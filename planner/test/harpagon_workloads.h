// Generated workloads for Harpagon's evaluation, in the spirit of its section IV: five applications of one to five
// modules on two kinds of hardware. The profiles and ranges are stated in harpagon_workloads.cpp and
// docs/research/planning-harpagon.md. Deterministic for a seed on every machine. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/harpagon/harpagon.h"

namespace leat::planner {

inline constexpr std::uint32_t kHarpagonWorkloads = 1131;

// The i-th workload of a seed: application i mod 5, request rate and objective drawn.
HarpagonProblem harpagon_workload(std::uint64_t seed, std::uint32_t index);
std::vector<std::string> harpagon_applications();

}  // namespace leat::planner
