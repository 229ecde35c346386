// PPipe's artifact data as CSV (models.csv, boundaries.csv, profiles/MODEL.csv): its block timings as profiles. Class =
// GPU type, share = MPS denominator, boundary bytes for one item as they cross the network (already fp16).
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/profile.h"

namespace leat::planner {

// By model name. Error: one line naming file and line.
Result<std::vector<Profile>> read_ppipe_profiles(const std::string& directory);

}  // namespace leat::planner
