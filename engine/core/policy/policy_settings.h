// Policies in words: a preset by name and settings by key, as [policy] of a configuration and the tools' --presets have
// them. Set-up only; pure.
#pragma once

#include "engine/core/model/topology.h"
#include "engine/core/policy/policy_keys.h"
#include "leat/result.hpp"

namespace leat::core {

using Presets = std::span<const Preset* const>;

// Leat's own: "leat". The papers' are in engine/papers/presets.h.
[[nodiscard]] Presets presets() noexcept;
// The same under another name with some of its rules changed, for studies.
[[nodiscard]] PresetOf<Policy> leat_preset(const char* name, const LeatVariant& variant);
// "leat, pard, ..." for an error message or a help text.
[[nodiscard]] std::string preset_names(Presets from = presets());
// Fills `out` with the preset of that name; false: no such preset.
[[nodiscard]] bool preset(std::string_view name, Policy& out, Presets from = presets());

// Error: one line that names the key or value and what there is instead.
[[nodiscard]] Result<Policy> policy_of(const std::string& preset, const PolicySettings& settings,
                                       Presets from = presets());

// The first key given that none of Leat's schedulers looks at in this plan, and which would, in one line; empty: none.
[[nodiscard]] std::string idle_setting(const Policy& policy, const Topology& topology);

struct NamedPolicy {
  std::string name;  // as it was written
  Policy policy;
};
// "leat", or "leat:risk_permille=2000:canaries=false".
[[nodiscard]] Result<NamedPolicy> read_policy(std::string_view words, Presets from = presets());
// Separated by commas, each once; "all" is every preset.
[[nodiscard]] Result<std::vector<NamedPolicy>> read_policies(std::string_view list, Presets from = presets());

}  // namespace leat::core
