// From the configuration to the core: what a plan does not say.
#include "engine/daemon/deployment.h"

namespace leat::daemon {

core::Topology topology_of(const Config& config, const Deployment& deployment) {
  core::Topology t = core::Topology::from(deployment.plan, deployment.applications);
  for (std::size_t a = 0; a < t.applications.size(); ++a)
    t.applications[a].weight = config.applications[a].share_permille;
  for (std::size_t m = 0; m < deployment.sizes.size(); ++m)
    t.modules[m].units_per_item = deployment.sizes[m].mean_units();
  return t;
}

}  // namespace leat::daemon
