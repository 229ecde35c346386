// The papers' schedulers, as presets: PARD with its ablations, what it is compared with, ELSA, PPipe, Harpagon.
// Set-up only; pure.
#pragma once

#include "engine/core/policy/policy_settings.h"

namespace leat::papers {

// Leat's own, then the papers'.
[[nodiscard]] core::Presets presets() noexcept;

// These, and Leat with one of its rules changed: leat-queues and leat-windows (that scheduler for all components of one
// stage), leat-single (one request a batch, dropped when expired, as ELSA's), leat-unfitted (blind to unequal
// partitions), leat-ageless (blind to the age of a burst). Studies' columns; nothing to serve with.
[[nodiscard]] core::Presets study_presets() noexcept;

// As engine/core/policy/policy_settings.h has them, from these presets.
[[nodiscard]] inline std::string preset_names() { return core::preset_names(presets()); }
[[nodiscard]] inline bool preset(std::string_view name, core::Policy& out) {
  return core::preset(name, out, presets());
}
[[nodiscard]] inline Result<core::NamedPolicy> read_policy(std::string_view words) {
  return core::read_policy(words, presets());
}
[[nodiscard]] inline Result<std::vector<core::NamedPolicy>> read_policies(std::string_view list) {
  return core::read_policies(list, presets());
}

}  // namespace leat::papers
