// Partitions take other models in the place of those they hold, where memory has no room for both: step by step. In
// each some are out, without a worker, and those that were out before come back with their new models; every module
// keeps a partition that holds it (planner/shared/in_place.h). What is done is seen from what runs, so a step needs to
// know of none before it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"

namespace leat::daemon {

struct InPlaceStep {
  planner::PlanFile plan;
  std::vector<std::string> partitions;          // that have a part in it; the others are out
  std::vector<std::vector<std::string>> waves;  // still to come, this one's first
};

// Every new worker has room beside the old one of its partition. Error: the first that has not.
Status room_beside(const Config& running_config, const Deployment& running, const Config& config,
                   const Deployment& wanted);

// None: there is room for all new workers beside the old ones, or nothing else is left to do than to go over to
// `wanted`. Error: a module would be without a partition, or the plans have models in stages.
Result<std::optional<InPlaceStep>> next_in_place(const Config& config, const Deployment& running,
                                                 const Deployment& wanted);

// Partitions of `before` that are out come back as they were there; the others stay as they are. None: none is out.
std::optional<InPlaceStep> back_in_place(const Config& config, const Deployment& running, const Deployment& before);

// A new version of a model where some partition that has the old one has no room for both: one half of those partitions
// is emptied and takes the new version while the other serves; the streams go over, and it is the other half's turn.
struct Halves {
  std::vector<std::string> first, second;  // partitions
};
// None: there is room for both everywhere. Error: a module would be without a partition, or models are in stages.
Result<std::optional<Halves>> halves_of(const Config& running_config, const Deployment& running, const Config& config,
                                        const Deployment& wanted);

// The plan of a deployment on some of its partitions.
[[nodiscard]] planner::PlanFile plan_on(const Config& config, const Deployment& of,
                                        const std::vector<std::string>& partitions);

}  // namespace leat::daemon
