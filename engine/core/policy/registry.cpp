#include "engine/core/policy/registry.h"

#include "engine/core/policy/queued.h"
#include "engine/core/policy/reserved.h"
#include "engine/core/policy/windows.h"

namespace leat::core {
namespace {

constexpr SchedulerRow kRows[] = {
    {"reservations",
     [](const Policy& p, const Component& c) {
       return p.place == Place::reservation || (p.reserve_pipelines && c.pipelined);
     },
     [](const Making& m) -> std::unique_ptr<Discipline> {
       add_plain_lanes(m);
       return std::make_unique<Reserved>(m.view, m.can, m.component, m.policy, m.limits);
     }},
    {"windows",
     [](const Policy& p, const Component& c) {
       return !c.pipelined && (p.windows == WindowRule::all || (p.windows == WindowRule::shared && c.shared));
     },
     [](const Making& m) -> std::unique_ptr<Discipline> { return std::make_unique<Windows>(m); }},
    {"queues", [](const Policy&, const Component&) { return true; },
     [](const Making& m) -> std::unique_ptr<Discipline> {
       return std::make_unique<Queued>(m.view, m.can, m.component, m.policy, m.lanes);
     }},
};

}  // namespace

const SchedulerRow& scheduler_for(const Policy& policy, const Component& component) {
  if (policy.scheduler != nullptr) return *policy.scheduler;
  for (const SchedulerRow& row : kRows) {
    if (row.takes(policy, component)) return row;
  }
  return kRows[std::size(kRows) - 1];
}

void add_plain_lanes(const Making& from) {
  for (ModuleId m : from.component.modules) {
    std::vector<Server> servers;
    for (RouteId r : from.view.topology().modules[m].routes) {
      for (PartitionId p : from.view.route(r).stages.front().pool) servers.push_back({.partition = p, .route = r});
    }
    from.lanes.add(from.view.model, m, servers);
  }
}

}  // namespace leat::core
