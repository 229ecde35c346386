// When a scenario's streams come and go, in the order of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/sim/simulator.h"

namespace leat::sim {

struct Coming {  // of a stream, or its going
  TimeNs at_ns = 0;
  std::uint32_t stream = 0;
  bool goes = false;
};

inline std::vector<Coming> comings_of(const Scenario& s) {
  std::vector<Coming> out;
  for (std::uint32_t i = 0; i < s.lives.size(); ++i) {
    if (s.lives[i].opened_ns > 0) out.push_back({.at_ns = s.lives[i].opened_ns, .stream = i});
    if (s.lives[i].closed_ns != core::kNever) out.push_back({.at_ns = s.lives[i].closed_ns, .stream = i, .goes = true});
  }
  std::ranges::stable_sort(out, {}, &Coming::at_ns);
  return out;
}

}  // namespace leat::sim
