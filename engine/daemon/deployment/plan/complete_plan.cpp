#include <algorithm>
#include <map>

#include "engine/daemon/deployment/deployment.h"
#include "shm/src/segments/control_groups.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kMinNs = 1000;  // the core's tables hold no zero times

// One module's latencies on one partition, from its profile or as the worker measured them.
MeasuredSizes measured(const ModuleConfig& module, const planner::Partition& partition, const worker::Ready& ready,
                       std::uint32_t session) {
  MeasuredSizes out;
  out.rows = profiled(module, partition);
  for (const planner::SizeRow& row : module.profile.sizes)
    if (!out.rows.empty() && row.partition_class == partition.partition_class && row.share == partition.share)
      out.by_size.push_back(row.latency);
  if (!out.rows.empty() || session >= ready.latency_by_batch.size()) return out;
  out.rows = ready.latency_by_batch[session];
  if (session < ready.latency_by_size.size()) out.by_size = ready.latency_by_size[session];
  return out;
}

// The words in force: the configuration's, or those that the model's own file says.
const std::string& preprocess_of(const ModuleConfig& module, const worker::Ready& ready, std::uint32_t session) {
  const bool known = session < ready.recognised.size() && !ready.recognised[session].preprocess.words.empty();
  return known ? ready.recognised[session].preprocess.words : module.preprocess;
}

bool doubtful(const worker::Ready& ready) { return ready.undisturbed_percent < worker::kUndisturbedPercent; }

bool same_class(const PartitionConfig& a, const PartitionConfig& b) {
  return a.partition.partition_class == b.partition.partition_class;
}

// A module on every partition that runs it.
struct MeasuredModule {
  const std::string* preprocess = nullptr;
  std::vector<std::uint32_t> pool;
  std::vector<MeasuredSizes> latency;  // [of pool]
};

Result<MeasuredModule> measured_module(const Config& config, const Deployment& d, std::uint32_t a, std::uint32_t m,
                                       std::span<const worker::Ready> ready) {
  const ApplicationConfig& app = config.applications[a];
  MeasuredModule out{.preprocess = &app.modules[m].preprocess};
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    const std::uint32_t session = d.session_of[p][d.first_module[a] + m];
    if (session == UINT32_MAX) continue;
    if (p < ready.size()) out.preprocess = &preprocess_of(app.modules[m], ready[p], session);
    if (d.planned) continue;  // a plan has its latencies
    out.latency.push_back(measured(app.modules[m], d.partitions[p].partition, ready[p], session));
    out.pool.push_back(p);
    if (out.latency.back().rows.empty())
      return Error{app.modules[m].places.profile + "partition '" + d.partitions[p].partition.name +
                   "' has no latency of module '" + app.application.modules[m].name +
                   "': name a profile that has its class '" + d.partitions[p].partition.partition_class + "'"};
  }
  return out;
}

// The slowest partition speaks for its class.
void slow_down(planner::Stage& stage, const std::vector<planner::Latency>& latency) {
  stage.latency_by_batch.resize(std::max(stage.latency_by_batch.size(), latency.size()));
  for (std::size_t b = 0; b < latency.size(); ++b) {
    planner::Latency& into = stage.latency_by_batch[b];
    into.p50_ns = std::max({into.p50_ns, latency[b].p50_ns, kMinNs});
    into.p99_ns = std::max({into.p99_ns, latency[b].p99_ns, into.p50_ns});
    into.samples += latency[b].samples;
  }
}

// One for each class of partitions; those of which this is in doubt say nothing while there are others of their class.
std::vector<planner::Route> routes_of(const Deployment& d, const ModuleSizes& sizes, const MeasuredModule& module,
                                      std::span<const worker::Ready> ready) {
  std::map<std::string, planner::Route> by_class;
  for (std::size_t i = 0; i < module.pool.size(); ++i) {
    const PartitionConfig& partition = d.partitions[module.pool[i]];
    planner::Route& route = by_class[partition.partition.partition_class];
    if (route.stages.empty()) route.stages.resize(1);
    route.stages[0].pool.push_back(module.pool[i]);
    const auto knows_better = [&](std::uint32_t p) {
      return same_class(d.partitions[p], partition) && !doubtful(ready[p]);
    };
    if (doubtful(ready[module.pool[i]]) && std::ranges::any_of(module.pool, knows_better)) continue;
    slow_down(route.stages[0], sizes.table(module.latency[i]));
  }
  std::vector<planner::Route> out;
  for (auto& [name, route] : by_class) {
    const planner::Stage& stage = route.stages[0];
    route.batch = static_cast<std::uint32_t>(stage.latency_by_batch.size());
    route.rate_rps = static_cast<double>(route.batch) / sizes.mean_units() * 1e9 /
                     static_cast<double>(stage.latency_by_batch.back().p50_ns) * static_cast<double>(stage.pool.size());
    out.push_back(std::move(route));
  }
  return out;
}

std::vector<std::string> doubts_of(const Deployment& d, std::span<const worker::Ready> ready) {
  std::vector<std::string> out;
  const shm::CpuQuota quota = shm::cpu_quota();  // workers are in leatd's control group
  const std::string taker = quota.cores > 0 ? "the CPU quota of " + quota_text(quota) + " (" + quota.where + ")"
                                            : std::string("something else");
  for (std::uint32_t p = 0; p < ready.size() && p < d.partitions.size(); ++p) {
    if (!doubtful(ready[p])) continue;
    out.push_back("partition '" + d.partitions[p].partition.name + "': while its models were measured " + taker +
                  " took " + std::to_string(100 - ready[p].undisturbed_percent) +
                  " % of its core, so their times are too long; they are measured again once it is idle, and what "
                  "batches really take corrects them meanwhile");
  }
  return out;
}

}  // namespace

Status complete_plan(const Config& config, Deployment& d, std::span<const worker::Ready> ready) {
  const bool first = d.sizes.empty();
  d.doubts = doubts_of(d, ready);
  d.overlap_permille.clear();
  for (const worker::Ready& r : ready) d.overlap_permille.push_back(r.overlap_permille);
  if (!d.planned) d.plan.routes.clear();
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    const ApplicationConfig& app = config.applications[a];
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      if (app.retired) {
        if (first) d.sizes.emplace_back();
        continue;
      }
      const auto module = measured_module(config, d, a, m, ready);
      if (!module.ok()) return Error{module.error()};
      const bool crops = !app.application.modules[m].after.empty();
      if (first) d.sizes.push_back(divide_sizes(*module->preprocess, crops, module->latency));
      if (d.planned) continue;  // a plan counts pictures
      for (planner::Route& route : routes_of(d, d.sizes[d.first_module[a] + m], *module, ready)) {
        route.application = a;
        route.module = m;
        d.plan.routes.push_back(std::move(route));
      }
    }
  }
  return Done{};
}

}  // namespace leat::daemon
