// What models take of a partition's memory, and which partition holds which: the planner's problem of residency
// (planner/shared/residency.h) as a deployment states it. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"
#include "planner/shared/residency.h"

namespace leat::daemon {

struct Residents {
  struct Module {
    std::uint32_t application = 0, module = 0;
  };
  std::vector<Module> modules;        // of applications that are served
  std::vector<double> items;          // [module]: of a request
  planner::ResidencyProblem problem;  // without weights; partitions and modules as here
  std::vector<std::vector<bool>> holds;
};
[[nodiscard]] Residents residents_of(const Config& config, const Deployment& deployment);
// What a plan of the same applications and partitions holds, by their names; others are passed over.
[[nodiscard]] std::vector<std::vector<bool>> holds_of(const planner::PlanFile& plan, const Config& config,
                                                      const Deployment& deployment, const Residents& of);
[[nodiscard]] std::string name_of(const Config& config, const Residents::Module& module);  // "application/module"
// What a partition takes and what it leaves where it holds `after` in the place of `before`: "takes a in the place of
// b". Empty: it holds the same.
[[nodiscard]] std::string moves_text(const Config& config, const std::vector<Residents::Module>& modules,
                                     const std::vector<bool>& before, const std::vector<bool>& after);

// What a partition's worker opens takes so much.
[[nodiscard]] std::int64_t bytes_of(const Config& config, const worker::Setup& setup);
// Every partition has room for what it opens. Error: one that has not, in one line.
[[nodiscard]] Status check_memory(const Config& config, const Deployment& deployment);

}  // namespace leat::daemon
