#include "engine/daemon/deployment/plan/adopted_plan.h"

#include <algorithm>

#include "engine/daemon/deployment/worker_setups.h"
#include "engine/worker/link/channel.h"

namespace leat::daemon {
namespace {

// Of the plan's indexes ours.
struct Ours {
  std::vector<std::uint32_t> application;
  std::vector<std::vector<std::uint32_t>> module;  // [the plan's application][its module]
  std::vector<std::uint32_t> partition;
};

std::string origin(const Config& config) {
  return config.plan_path.empty() ? "the plan: " : config.plan_place + config.plan_path + ": ";
}

Status find_applications(const Config& config, const planner::PlanFile& file, const Deployment& d, Ours& ours) {
  const auto served = std::ranges::count(config.applications, false, &ApplicationConfig::retired);
  if (static_cast<std::ptrdiff_t>(file.applications.size()) != served)
    return Error{"was made for " + std::to_string(file.applications.size()) + " applications, the configuration has " +
                 std::to_string(served) + "; plan anew"};
  for (const planner::Application& theirs : file.applications) {
    auto app = d.applications.begin();
    while (app != d.applications.end() &&
           (config.applications[static_cast<std::size_t>(app - d.applications.begin())].retired ||
            app->name != theirs.name))
      ++app;
    if (app == d.applications.end())
      return Error{"is for an application '" + theirs.name + "' the configuration does not have; plan anew"};
    ours.application.push_back(static_cast<std::uint32_t>(app - d.applications.begin()));
    ours.module.emplace_back();
    for (const planner::Module& m : theirs.modules) {
      const auto module = std::ranges::find(app->modules, m.name, &planner::Module::name);
      if (module == app->modules.end())
        return Error{"application '" + theirs.name + "' has no module '" + m.name +
                     "' in the configuration; plan anew"};
      ours.module.back().push_back(static_cast<std::uint32_t>(module - app->modules.begin()));
    }
  }
  return Done{};
}

Status find_partitions(const planner::PlanFile& file, Deployment& d, Ours& ours) {
  for (const planner::Partition& p : file.plan.partitions) {
    const auto found = std::ranges::find(d.partitions, p.name, [](const auto& o) { return o.partition.name; });
    if (found == d.partitions.end())
      return Error{"uses the partition '" + p.name +
                   "', which this host's configuration does not have; add it, or plan anew"};
    const planner::Partition& here = found->partition;
    if (here.kind != p.kind || here.partition_class != p.partition_class)
      return Error{"partition '" + p.name + "' is " + planner::name_of(p.kind) + " of class '" + p.partition_class +
                   "' in the plan, but " + planner::name_of(here.kind) + " of class '" + here.partition_class +
                   "' here; plan anew"};
    ours.partition.push_back(static_cast<std::uint32_t>(found - d.partitions.begin()));
    d.plan.partitions[ours.partition.back()].host = p.host;
  }
  return Done{};
}

void adopt_budgets(const planner::Plan& plan, const Ours& ours, Deployment& d) {
  if (plan.budget_ns.empty()) return;
  d.plan.budget_ns.resize(d.applications.size());
  for (std::size_t a = 0; a < ours.application.size() && a < plan.budget_ns.size(); ++a) {
    auto& budget = d.plan.budget_ns[ours.application[a]];
    budget.resize(d.applications[ours.application[a]].modules.size());
    for (std::size_t m = 0; m < plan.budget_ns[a].size(); ++m) budget[ours.module[a][m]] = plan.budget_ns[a][m];
  }
}

Status adopt_route(const Config& config, planner::Route route, const Ours& ours, Deployment& d) {
  if (route.batch > worker::kMaxBatch)
    return Error{"has a batch of " + std::to_string(route.batch) + "; the largest is 64"};
  route.module = ours.module[route.application][route.module];
  route.application = ours.application[route.application];
  const ModuleConfig& module = config.applications[route.application].modules[route.module];
  if (const std::string problem = problem_of_stages(route, module); !problem.empty()) return Error{problem};
  for (planner::Stage& stage : route.stages) {
    for (std::uint32_t& p : stage.pool) {
      p = ours.partition[p];
      if (!can_run(d.partitions[p], module))
        return Error{"puts the executor '" + module.executor + "' on the emulated partition '" +
                     d.partitions[p].partition.name + "'; plan anew"};
    }
  }
  d.plan.routes.push_back(std::move(route));
  return Done{};
}

}  // namespace

Status adopt_plan(const Config& config, const planner::PlanFile& file, std::span<const DevicePair> pairs,
                  Deployment& d) {
  Ours ours;
  if (auto status = find_applications(config, file, d, ours); !status) return Error{origin(config) + status.error()};
  if (auto status = find_partitions(file, d, ours); !status) return Error{origin(config) + status.error()};
  d.plan.hosts = file.plan.hosts;
  d.plan.certificate = file.plan.certificate;
  adopt_budgets(file.plan, ours, d);
  for (std::size_t r = 0; r < file.plan.routes.size(); ++r)
    if (auto status = adopt_route(config, file.plan.routes[r], ours, d); !status)
      return Error{origin(config) + "route " + std::to_string(r) + ": " + status.error()};
  auto edges = edges_of(config, d.plan, origin(config));
  if (!edges.ok()) return Error{edges.error()};
  d.edges = std::move(*edges);
  place_edges(config, d.partitions, pairs, d.edges);
  d.planned = true;
  return Done{};
}

}  // namespace leat::daemon
