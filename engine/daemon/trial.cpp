#include "engine/daemon/trial.h"

#include <utility>

namespace leat::daemon {

void as_trial(Config& config, std::vector<std::uint32_t> cores) {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  const bool cpu = config.cpu_auto || config.partitions.front().partition.kind == planner::PartitionKind::cpu;
  config.partitions.resize(1);
  if (cpu) {
    PartitionConfig& all = config.partitions.front();
    all.partition = {};
    all.partition.name = "cpu";
    all.partition.kind = planner::PartitionKind::cpu;
    all.partition.partition_class = "cpu:" + std::to_string(cores.size());
    all.cores = std::move(cores);
  }
  config.cpu_auto = false;
  config.plan_path.clear();
  config.plan_auto = false;
  config.limits.batch_ns = kHourNs;
  for (ApplicationConfig& application : config.applications) {
    application.application.slo_ns = kHourNs;
    application.slo_auto = false;
    application.expected.clear();
    for (ModuleConfig& module : application.modules) module.batch = 1;
  }
}

}  // namespace leat::daemon
