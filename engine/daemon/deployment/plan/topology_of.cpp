// From the configuration to the core: what a plan does not say.
#include "engine/core/policy/policy_settings.h"
#include "engine/daemon/deployment/deployment.h"

namespace leat::daemon {

core::Topology topology_of(const Config& config, const Deployment& deployment) {
  core::Topology t = core::Topology::from(deployment.plan, deployment.applications);
  for (std::size_t a = 0; a < t.applications.size(); ++a)
    t.applications[a].weight = config.applications[a].share_permille;
  for (std::size_t m = 0; m < deployment.sizes.size(); ++m)
    t.modules[m].units_per_item = deployment.sizes[m].mean_units();
  return t;
}

std::string idle_setting(const Config& config, const Deployment& d) {
  core::Topology t = topology_of(config, d);
  // Before anything is measured there are no routes: every module will run on every partition that can.
  for (core::ModuleId m = 0; d.plan.routes.empty() && m < t.modules.size(); ++m) {
    t.modules[m].routes = {static_cast<core::RouteId>(t.routes.size())};
    core::StageSpec stage{.pool = {}, .latency = {.p50_ns = {1}, .p99_ns = {1}}};
    for (core::PartitionId p = 0; p < d.session_of.size(); ++p)
      if (d.session_of[p][m] != UINT32_MAX) stage.pool.push_back(p);
    t.routes.push_back({.module = m, .batch = 1, .rate_rps = 0, .stages = {std::move(stage)}});
  }
  if (!t.problem().empty()) return {};  // that is said elsewhere
  const std::string line = core::idle_setting(config.policy, t);
  return line.empty() ? line : config.policy_place + line;
}

}  // namespace leat::daemon
