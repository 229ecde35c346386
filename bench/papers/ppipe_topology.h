// From one of PPipe's stored plans to what the core schedules over: a GPU cut into v shares is v partitions, pools that
// stand on servers, and links.
#pragma once

#include "engine/core/model/topology.h"
#include "planner/papers/ppipe_scenarios.h"

namespace leat::bench {

struct PlanLayout {
  const char* plan = "ppipe";  // whose stored plan
  bool chains = false;         // every pipeline is n chains of one partition a stage (DART)
  bool spread = false;         // on the servers where features wait least for their links; else server after server
  bool authors_links = false;  // links of pools (engine/sim/pool_links.h): servers mean nothing
};

// Precondition: the scenario holds that plan.
core::Topology ppipe_topology(const planner::Scenario& scenario, const PlanLayout& layout);

}  // namespace leat::bench
