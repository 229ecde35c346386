// Policies in words: a preset by name and settings by key, as [policy] of a configuration and the tools' --presets have
// them. Set-up only; pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/policy.h"
#include "leat/result.hpp"

namespace leat::core {

using PolicySettings = std::vector<std::pair<std::string, std::string>>;  // key, value

// Error: one line that names the key or value and what there is instead.
[[nodiscard]] Result<Policy> policy_of(const std::string& preset, const PolicySettings& settings);

struct NamedPolicy {
  std::string name;  // as it was written
  Policy policy;
};
// "leat", or "leat:order=lbf:kappa_permille=760".
[[nodiscard]] Result<NamedPolicy> read_policy(std::string_view words);
// Separated by commas, each once; "all" is every preset.
[[nodiscard]] Result<std::vector<NamedPolicy>> read_policies(std::string_view list);

}  // namespace leat::core
