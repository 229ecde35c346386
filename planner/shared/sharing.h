// A plan in which the modules share all partitions of a class in time, beside the one in which every partition has one
// block range, and the better of the two by one model (waits.h). What leatd deploys without a plan is such a shared
// plan, so that a plan by Leat's rules never promises less than none. Pure; any thread.
#pragma once

#include <vector>

#include "planner/build/host_types.h"
#include "planner/io/plan_io.h"
#include "planner/profile.h"

namespace leat::planner {

struct Sharing {
  bool better = false;        // `plan` promises more than the dedicated one
  Plan plan;                  // complete, with its certificate, where shared_rate > 0
  Plan unplanned;             // every module on every partition in any batch: what leatd deploys without a plan; at the
                              // largest of all promises, or where there is none at what there is time for. Where
                              // memory does not hold all models: sets of them, if the model of waits promises nothing
  double shared_rate = 0;     // z by the model: the least rate / weight
  double dedicated_rate = 0;  // of `dedicated`, by the same model; 0: it can promise nothing
};

struct Resources {
  const std::vector<Application>& applications;
  std::vector<double> weights;                        // of the applications in z
  std::vector<std::vector<const Profile*>> profiles;  // [application][module]
  const Host& host;
  const HostTypes& types;
};

// dedicated: null, or the plan made by giving partitions to block ranges, which promises the z of its certificate by
// its own rules.
Sharing consider_sharing(const Resources& on, const Plan* dedicated);

// The sets of models that a plan holds, made better (residency.h). Error: it is of other applications or partitions.
Result<Plan> improve_sharing(const Resources& on, const PlanFile& from, double per_load);

}  // namespace leat::planner
