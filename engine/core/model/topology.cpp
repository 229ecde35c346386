#include "engine/core/model/topology.h"

#include <algorithm>

namespace leat::core {
namespace {

LatencyTable table_of(const std::vector<planner::Latency>& rows) {
  LatencyTable table;
  for (const planner::Latency& row : rows) {
    table.p50_ns.push_back(row.p50_ns);
    table.p99_ns.push_back(std::max(row.p50_ns, row.p99_ns));
  }
  return table;
}

std::string at(const char* what, std::size_t index, const char* problem) {
  return std::string(what) + " " + std::to_string(index) + ": " + problem;
}

std::string problem_of_stage(const Topology& t, const RouteSpec& route, const StageSpec& stage) {
  if (stage.pool.empty()) return "a stage has no partition";
  for (PartitionId p : stage.pool) {
    if (p >= t.partitions.size()) return "a stage names a partition that does not exist";
  }
  if (stage.latency.p50_ns.size() < route.batch) return "a stage's latency table is shorter than the route's batch";
  if (stage.latency.p99_ns.size() != stage.latency.p50_ns.size())
    return "a stage's p50 and p99 tables differ in length";
  for (TimeNs ns : stage.latency.p50_ns) {
    if (ns <= 0) return "a stage has a latency that is not positive";
  }
  if (stage.transfer_bytes < 0) return "a stage transfers less than nothing";
  return {};
}

}  // namespace

Topology Topology::from(const planner::Plan& plan, std::span<const planner::Application> applications) {
  Topology t;
  std::vector<std::uint32_t> first;  // first module id of each application
  for (std::size_t a = 0; a < applications.size(); ++a) {
    const planner::Application& source = applications[a];
    first.push_back(static_cast<std::uint32_t>(t.modules.size()));
    ApplicationSpec app{.slo_ns = source.slo_ns, .rate_rps = source.rate_rps, .modules = {}};
    for (std::size_t m = 0; m < source.modules.size(); ++m) {
      ModuleSpec module{.application = static_cast<std::uint32_t>(a),
                        .before = {},
                        .after = {},
                        .items_per_request = source.modules[m].items_per_request,
                        .fan_out_cap = std::max(1u, source.modules[m].fan_out_cap),
                        .budget_ns = 0,
                        .routes = {}};
      for (std::uint32_t before : source.modules[m].after) module.before.push_back(first[a] + before);
      if (a < plan.budget_ns.size() && m < plan.budget_ns[a].size()) module.budget_ns = plan.budget_ns[a][m];
      const auto id = static_cast<ModuleId>(t.modules.size());
      for (ModuleId before : module.before) {
        if (before < id) t.modules[before].after.push_back(id);
      }
      app.modules.push_back(id);
      t.modules.push_back(std::move(module));
    }
    t.applications.push_back(std::move(app));
  }
  for (const planner::Partition& p : plan.partitions) {
    t.partitions.push_back({.size = p.size, .price = p.price, .device = p.device, .host = p.host});
  }
  for (const planner::Link& link : plan.hosts) {
    t.hosts.push_back({.up_bytes_per_ns = link.up_gbps / 8, .down_bytes_per_ns = link.down_gbps / 8});
  }
  for (const planner::Route& source : plan.routes) {
    const auto id = static_cast<RouteId>(t.routes.size());
    RouteSpec route{.module = kNone, .batch = source.batch, .rate_rps = source.rate_rps, .stages = {}};
    if (source.application < applications.size() && source.module < applications[source.application].modules.size()) {
      route.module = first[source.application] + source.module;
      t.modules[route.module].routes.push_back(id);
    }
    for (const planner::Stage& stage : source.stages) {
      route.stages.push_back(
          {.pool = stage.pool, .latency = table_of(stage.latency_by_batch), .transfer_bytes = stage.transfer_bytes});
    }
    t.routes.push_back(std::move(route));
  }
  return t;
}

std::string Topology::problem() const {
  if (applications.empty()) return "no application";
  if (partitions.empty()) return "no partition";
  for (std::size_t a = 0; a < applications.size(); ++a) {
    const ApplicationSpec& app = applications[a];
    if (app.slo_ns <= 0) return at("application", a, "its SLO is not positive");
    if (app.modules.empty()) return at("application", a, "it has no module");
    if (app.modules.size() > kMaxModulesPerApplication) return at("application", a, "it has too many modules");
    for (ModuleId m : app.modules) {
      if (m >= modules.size() || modules[m].application != a)
        return at("application", a, "it lists a module that is not its own");
    }
    for (std::size_t i = 0; i < app.modules.size(); ++i) {
      if (app.modules[i] != app.modules[0] + i) return at("application", a, "its modules do not have successive ids");
    }
  }
  for (std::size_t m = 0; m < modules.size(); ++m) {
    for (ModuleId before : modules[m].before) {
      if (before >= m || modules[before].application != modules[m].application) {
        return at("module", m, "a predecessor is not an earlier module of its application");
      }
    }
    if (modules[m].routes.empty()) return at("module", m, "the plan has no route for it");
    if (modules[m].fan_out_cap == 0) return at("module", m, "its fan-out cap is 0");
    if (!(modules[m].items_per_request > 0)) return at("module", m, "its items per request are not positive");
  }
  for (std::size_t r = 0; r < routes.size(); ++r) {
    const RouteSpec& route = routes[r];
    if (route.module >= modules.size()) return at("route", r, "it names a module that does not exist");
    if (route.batch == 0 || route.batch > kMaxBatch) return at("route", r, "its batch size is 0 or too large");
    if (route.stages.empty() || route.stages.size() > kMaxStages) return at("route", r, "it has no stage or too many");
    for (const StageSpec& stage : route.stages) {
      if (std::string text = problem_of_stage(*this, route, stage); !text.empty()) return at("route", r, text.c_str());
    }
  }
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    if (!hosts.empty() && partitions[p].host >= hosts.size()) return at("partition", p, "its host does not exist");
  }
  return {};
}

}  // namespace leat::core
