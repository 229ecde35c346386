// What PPipe's plans, its baselines' and Leat's carry of measured models on a pool of two partition classes, a faster
// and a slower one: by the planners alone, nothing is simulated.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat::bench {

struct ProfilePool {
  std::string fast_class, slow_class;  // of the profiles, at share 1
  std::uint32_t fast = 0, slow = 0;    // how many
  double slo_scale = 5;                // SLO of a model over its latency on the fast class at batch 1 (PPipe: 5)
  double margin = 0.4;                 // part of the SLO kept for waiting (PPipe: 40 %)
};

// {"np": {"rps": ..., "gap": ...}, "dart_r": ..., "ppipe": ..., "leat": ...}: rate of every model, all alike, in
// requests/s; features in place. Error: one line.
Result<Json> plans_of_profiles(const std::string& folder, const ProfilePool& pool);

}  // namespace leat::bench
