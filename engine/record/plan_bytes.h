// A plan as bytes: all that the core is made of or put under, and the names that people know it by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/scheduler.h"
#include "leat/result.hpp"

namespace leat::record {

struct Names {
  std::vector<std::string> applications, modules, partitions;  // by the core's numbers; fewer where there are none
  std::string preset = "leat";                                 // with its settings, as the configuration has them
  std::vector<std::pair<std::string, std::string>> settings;
};

struct RecordedPlan {
  core::Topology topology;
  core::Limits limits;
  // The policy's numbers; its scheduler is that of names.preset (policy_of()).
  core::Policy policy;
  Names names;
};

// What people know it by; where the record has no name for it, its number.
[[nodiscard]] std::string application_name(const RecordedPlan& plan, std::uint32_t application);
[[nodiscard]] std::string module_name(const RecordedPlan& plan, core::ModuleId module);
[[nodiscard]] std::string partition_name(const RecordedPlan& plan, core::PartitionId partition);

[[nodiscard]] std::string encode(const RecordedPlan& plan);
// Precondition: none; the bytes may be anything. Error: one line. topology.problem() is empty afterwards, and a core
// made of it takes no more than some hundred MiB.
[[nodiscard]] Result<RecordedPlan> decode_plan(std::span<const std::byte> bytes);

}  // namespace leat::record
