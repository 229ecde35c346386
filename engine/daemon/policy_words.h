// The [policy] table of the configuration: a preset by name and overrides by key, applied to core::Policy. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/core/policy.h"

namespace leat::daemon {

using PolicyOverrides = std::vector<std::pair<std::string, std::string>>;

// Fills `out`. Empty: done. Otherwise one line that names the key or value and what there is instead.
std::string apply_policy(const std::string& preset, const PolicyOverrides& overrides, core::Policy& out);

}  // namespace leat::daemon
