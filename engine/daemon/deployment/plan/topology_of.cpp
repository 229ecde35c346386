// From the configuration to the core: what a plan does not say.
#include <algorithm>

#include "engine/core/policy/policy_settings.h"
#include "engine/daemon/deployment/deployment.h"
#include "shm/src/counters/counters.h"

namespace leat::daemon {

namespace {

// A module of a retired application: waits where no worker is.
void park(core::Topology& t, core::ModuleId m) {
  const auto nowhere = static_cast<core::PartitionId>(t.partitions.size() - 1);
  t.modules[m].routes = {static_cast<core::RouteId>(t.routes.size())};
  t.routes.push_back({.module = m,
                      .batch = 1,
                      .rate_rps = 0,
                      .stages = {{.pool = {nowhere}, .latency = {.p50_ns = {1'000'000}, .p99_ns = {1'000'000}}}}});
}

}  // namespace

std::uint32_t overlap_permille_of(const Deployment& d, const planner::Route& route, std::size_t stage) {
  std::uint32_t least = UINT32_MAX;
  for (const std::uint32_t p : route.stages[stage].pool) {
    const std::uint32_t of = session(d, p, route.application, route.module, blocks_of(route, stage));
    const bool known = p < d.overlap_permille.size() && of < d.overlap_permille[p].size();
    least = std::min(least, known ? d.overlap_permille[p][of] : 0);
  }
  return least == UINT32_MAX ? 0 : least;
}

std::uint32_t slots_for(std::size_t partitions) {
  constexpr std::size_t kRecords = shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::partition)];
  return static_cast<std::uint32_t>(std::max(partitions + 1, std::min(kRecords, 2 * partitions + 8)));
}

core::Topology topology_of(const Config& config, const Deployment& deployment, std::uint32_t slots) {
  core::Topology t = core::Topology::from(deployment.plan, deployment.applications);
  for (std::size_t r = 0; r < deployment.plan.routes.size(); ++r)
    for (std::size_t s = 0; s < t.routes[r].stages.size(); ++s)
      t.routes[r].stages[s].overlap_permille = overlap_permille_of(deployment, deployment.plan.routes[r], s);
  std::vector<core::PartitionSpec> partitions(slots);
  for (std::size_t p = 0; p < t.partitions.size(); ++p) partitions[deployment.slots[p]] = t.partitions[p];
  t.partitions = std::move(partitions);
  for (core::RouteSpec& route : t.routes)
    for (core::StageSpec& stage : route.stages)
      for (core::PartitionId& p : stage.pool) p = deployment.slots[p];
  for (std::size_t a = 0; a < t.applications.size(); ++a) {
    t.applications[a].weight = config.applications[a].share_permille;
    t.applications[a].retired = config.applications[a].retired;
    if (!config.applications[a].retired) continue;
    for (const core::ModuleId m : t.applications[a].modules) park(t, m);
  }
  for (std::size_t m = 0; m < deployment.sizes.size(); ++m) {
    t.modules[m].units_per_item = deployment.sizes[m].mean_units();
    t.modules[m].differs_in_size = !deployment.sizes[m].sizes.empty();
  }
  return t;
}

std::string idle_setting(const Config& config, const Deployment& d) {
  core::Topology t = topology_of(config, d, std::ranges::max(d.slots) + 2);
  // Before anything is measured there are no routes: every module will run on every partition that can.
  for (core::ModuleId m = 0; d.plan.routes.empty() && m < t.modules.size(); ++m) {
    if (!t.modules[m].routes.empty()) continue;
    t.modules[m].routes = {static_cast<core::RouteId>(t.routes.size())};
    core::StageSpec stage{.pool = {}, .latency = {.p50_ns = {1}, .p99_ns = {1}}};
    for (core::PartitionId p = 0; p < d.session_of.size(); ++p)
      if (d.session_of[p][m] != UINT32_MAX) stage.pool.push_back(d.slots[p]);
    t.routes.push_back({.module = m, .batch = 1, .rate_rps = 0, .stages = {std::move(stage)}});
  }
  if (!t.problem().empty()) return {};  // that is said elsewhere
  const std::string line = core::idle_setting(config.policy, t);
  return line.empty() ? line : config.policy_place + line;
}

}  // namespace leat::daemon
