// The table of schedulers: which discipline a component of a plan gets. A new one is a room of this folder and a row of
// registry.cpp; a test may bring its own row in Policy::scheduler.
#pragma once

#include <memory>

#include "engine/core/policy/seam.h"

namespace leat::core {

// What a discipline is made from. It adds its lanes, those of its component's modules, and no others.
struct Making {
  const View& view;
  Verbs& can;
  const Component& component;
  const Policy& policy;
  const Limits& limits;
  Lanes& lanes;
};

struct SchedulerRow {
  const char* name;
  bool (*takes)(const Policy& policy, const Component& component);
  std::unique_ptr<Discipline> (*make)(const Making& from);
};

// The first row that takes it; Policy::scheduler, where one is given.
[[nodiscard]] const SchedulerRow& scheduler_for(const Policy& policy, const Component& component);

// One lane for each module of the component, with all its partitions in the plan's order.
void add_plain_lanes(const Making& from);

}  // namespace leat::core
