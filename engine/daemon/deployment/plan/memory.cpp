#include "engine/daemon/deployment/plan/memory.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/daemon/deployment/worker_setups.h"

namespace leat::daemon {
namespace {

// Seconds of an item in the largest batch that leaves half of the objective; 0: it does not run there.
double cost_s(const ApplicationConfig& app, const ModuleConfig& module, const PartitionConfig& partition) {
  if (!can_run(partition, module)) return 0;
  const std::vector<planner::Latency> rows = profiled(module, partition.partition);
  double out = 0;
  for (std::size_t b = 1; b <= rows.size(); ++b)
    if (b == 1 || rows[b - 1].p99_ns <= app.application.slo_ns / 2)
      out = std::max<double>(1, static_cast<double>(rows[b - 1].p50_ns)) / 1e9 / static_cast<double>(b);
  return out;
}

}  // namespace

Residents residents_of(const Config& config, const Deployment& d) {
  Residents out;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a)
    for (std::uint32_t m = 0; !config.applications[a].retired && m < config.applications[a].modules.size(); ++m) {
      out.modules.push_back({a, m});
      out.items.push_back(config.applications[a].application.modules[m].items_per_request);
      out.problem.application.push_back(a);
      out.problem.module_bytes.push_back(static_cast<double>(config.applications[a].modules[m].memory_bytes));
    }
  std::vector<std::tuple<std::string, std::uint32_t, std::int64_t>> kinds;
  for (std::size_t p = 0; p < d.partitions.size(); ++p) {
    const planner::Partition& partition = d.partitions[p].partition;
    const std::tuple kind{partition.partition_class, partition.share, partition.memory_bytes};
    auto at = std::find(kinds.begin(), kinds.end(), kind);
    if (at == kinds.end()) at = kinds.insert(kinds.end(), kind);
    out.problem.kind.push_back(static_cast<std::uint32_t>(at - kinds.begin()));
    out.problem.memory_bytes.push_back(static_cast<double>(partition.memory_bytes));
    std::vector<double>& cost = out.problem.cost_s.emplace_back();
    std::vector<bool>& holds = out.holds.emplace_back();
    for (const auto& [a, m] : out.modules) {
      cost.push_back(cost_s(config.applications[a], config.applications[a].modules[m], d.partitions[p]));
      holds.push_back(d.session_of[p][d.first_module[a] + m] != UINT32_MAX);
    }
  }
  return out;
}

std::vector<std::vector<bool>> holds_of(const planner::PlanFile& plan, const Config& config, const Deployment& d,
                                        const Residents& of) {
  std::vector<std::vector<bool>> out(d.partitions.size(), std::vector<bool>(of.modules.size()));
  for (const planner::Route& route : plan.plan.routes) {
    const planner::Application& app = plan.applications[route.application];
    const auto module = std::ranges::find_if(of.modules, [&](const Residents::Module& m) {
      const planner::Application& ours = config.applications[m.application].application;
      return ours.name == app.name && ours.modules[m.module].name == app.modules[route.module].name;
    });
    if (module == of.modules.end()) continue;
    for (const planner::Stage& stage : route.stages)
      for (const std::uint32_t p : stage.pool)
        for (std::size_t q = 0; q < d.partitions.size(); ++q)
          if (d.partitions[q].partition.name == plan.plan.partitions[p].name)
            out[q][static_cast<std::size_t>(module - of.modules.begin())] = true;
  }
  return out;
}

std::string name_of(const Config& config, const Residents::Module& module) {
  const planner::Application& app = config.applications[module.application].application;
  return app.modules.size() == 1 ? app.name : app.name + "/" + app.modules[module.module].name;
}

std::string moves_text(const Config& config, const std::vector<Residents::Module>& modules,
                       const std::vector<bool>& before, const std::vector<bool>& after) {
  std::string come, go;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    std::string& to = after[m] ? come : go;
    if (before[m] != after[m]) to += (to.empty() ? "" : ", ") + name_of(config, modules[m]);
  }
  if (come.empty()) return go.empty() ? go : "leaves " + go;
  return "takes " + come + (go.empty() ? "" : " in the place of " + go);
}

std::int64_t bytes_of(const Config& config, const worker::Setup& setup) {
  std::set<std::pair<std::string, std::string>> seen;  // stages of one module are counted once
  std::int64_t out = 0;
  for (const worker::ModuleSetup& s : setup.modules) {
    if (!seen.insert({s.application, s.name}).second) continue;
    for (const ApplicationConfig& app : config.applications)
      if (!app.retired && app.application.name == s.application) out += app.modules[s.index].memory_bytes;
  }
  return out;
}

Status check_memory(const Config& config, const Deployment& d) {
  for (std::size_t p = 0; p < d.partitions.size(); ++p) {
    const std::int64_t room = d.partitions[p].partition.memory_bytes, bytes = bytes_of(config, d.setups[p]);
    if (room <= 0 || bytes <= room) continue;
    return Error{config.file + ": partition '" + d.partitions[p].partition.name +
                 "' has memory_mib = " + std::to_string(room >> 20) + ", and the models that it is to hold take " +
                 std::to_string((bytes + (1 << 20) - 1) >> 20) + "; write plan = \"auto\" in [daemon], or a plan " +
                 "that gives it fewer"};
  }
  return Done{};
}

}  // namespace leat::daemon
