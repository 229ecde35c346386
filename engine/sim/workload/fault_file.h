// Faults as a file, TOML or JSON (docs/reference/simulator.md), with the names of the plan's partitions, applications
// and modules.
//
//   [[lost]]          partition = "gpu0"   at_s = 10   back_s = 20       # back_s left out: never
//   [[slow]]          partition = "gpu1"   from_s = 5  until_s = 15  factor = 1.5
//   [[clock_step]]    at_s = 12            by_ms = -50
//   [[burst]]         application = "traffic"  from_s = 8  until_s = 9  factor = 3
//   [[profile_error]] module = "traffic/detect"  percent = 20            # it really takes 20 % longer than the plan
//   says
//
// partition "gpu0*": all whose name begins so; application or module left out: all of them. Errors are one line: file,
// key, what to do. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/sim/simulator.h"
#include "engine/sim/workload/workload.h"
#include "leat/result.hpp"
#include "planner/io/plan_io.h"

namespace leat::sim {

struct ProfileError {
  core::ModuleId module = core::kNone;  // id over all applications; kNone: all
  std::int64_t percent = 0;             // -90..900
};

struct FaultFile {
  std::vector<Fault> faults;  // sorted by at_ns
  std::vector<Burst> bursts;
  std::vector<ProfileError> profile_errors;
};

[[nodiscard]] Result<FaultFile> parse_faults(std::string_view text, const std::string& name,
                                             const planner::PlanFile& plan);
[[nodiscard]] Result<FaultFile> read_faults(const std::string& path, const planner::PlanFile& plan);

}  // namespace leat::sim
