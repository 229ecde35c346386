// What leat-plan is given as a child: a folder with the applications, the partitions and each module's latencies, one
// block each, since what leatd asks for are plans of unsplit models. May block for as long as small files take. Errors
// are one line. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"

namespace leat::daemon {

// A folder of its own, gone with its owner.
class PlannerFolder {
 public:
  PlannerFolder();
  ~PlannerFolder();
  PlannerFolder(const PlannerFolder&) = delete;
  PlannerFolder& operator=(const PlannerFolder&) = delete;

  // rates: requests a second of each application of the configuration, in the place of what it expects; none: as it
  // expects. Error: a module that nobody has measured, or no room for files.
  Status write(const Config& config, const Deployment& deployment, std::span<const double> rates = {}) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // leat-plan's words for what lies there; the plan goes to `output`.
  [[nodiscard]] std::vector<std::string> words(const std::string& solver, const std::string& output) const;

 private:
  std::string path_;  // empty: it could not be made
};

// What is deployed, as a file says it: without retired applications.
[[nodiscard]] planner::PlanFile plan_file_of(const Config& config, const Deployment& deployment);

}  // namespace leat::daemon
