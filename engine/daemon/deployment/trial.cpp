#include "engine/daemon/deployment/trial.h"

#include <algorithm>
#include <utility>

namespace leat::daemon {

void as_trial(Config& config, std::vector<std::uint32_t> cores) {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  const bool cpu =
      config.cpu_auto || row_of(config.partitions.front().partition.kind).place == planner::KindPlace::cores;
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
  config.limits.batch_timeout_ns = kHourNs;
  config.workers.overlap = worker::Overlap::off;  // one picture at a time
  for (ApplicationConfig& application : config.applications) {
    application.application.slo_ns = kHourNs;
    application.slo_auto = false;
    application.expected.clear();
    for (ModuleConfig& module : application.modules) module.batch = 1;
  }
}

worker::Ready as_alone(const worker::Setup& setup, worker::Ready ready) {
  for (std::size_t m = 0; m < std::min(setup.modules.size(), ready.latency_by_batch.size()); ++m)
    if (auto& rows = ready.latency_by_batch[m]; !rows.empty())
      rows.resize(setup.modules[m].batch, planner::Latency(rows.front()));
  return ready;
}

}  // namespace leat::daemon
