// How the pooled solver's time grows: the scenarios of PPipe's data made larger in one way at a time. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/papers/ppipe_scenarios.h"

namespace leat::planner {

// Blocks merged or cut so that `blocks` are left, latencies and boundaries in proportion. Precondition: blocks >= 1.
Profile with_blocks(const Profile& profile, std::uint32_t blocks);

struct GrowthCase {
  std::string axis;  // "gpus", "types", "blocks", "dnns"
  double size = 0;
  std::string id;
  PooledProblem problem;
};

// gpus: family maf19, all counts times 1, 10, 100, 1000. types: every three-DNN group on 100 GPUs of 2, 3 and 4 types.
// blocks: every group with 5, 10, 15, 20 blocks on L4-T4. dnns: the first 1, 2, 4, 8, 12 models on L4-T4. est_rps: each
// DNN's rate with whole models (PPipe). `own` receives the profiles that are not the set's.
std::vector<GrowthCase> growth_cases(const ScenarioSet& set, std::vector<std::vector<Profile>>& own);

}  // namespace leat::planner
