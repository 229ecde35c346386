#include "engine/daemon/deployment/plan/stages.h"

#include <algorithm>

#include "engine/core/model/topology.h"
#include "shm/src/counters/counters.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

// Items a second through a stage, each partition at its best batch.
double rate_of(const planner::Stage& stage) {
  double best = 0;
  for (std::size_t b = 1; b <= stage.latency_by_batch.size(); ++b)
    best = std::max(best, static_cast<double>(b) * 1e9 /
                              static_cast<double>(std::max<std::int64_t>(1, stage.latency_by_batch[b - 1].p50_ns)));
  return best * static_cast<double>(stage.pool.size());
}

void add(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& pool) {
  for (const auto p : pool)
    if (std::find(to.begin(), to.end(), p) == to.end()) to.push_back(p);
}

std::string mib(const shm::FeatureSpec& s) {
  return std::to_string(
      static_cast<std::uint64_t>(static_cast<double>(s.rows) * static_cast<double>(s.row_bytes) / (1 << 20)));
}

}  // namespace

BlockRange blocks_of(const planner::Route& route, std::size_t stage) {
  return {route.stages[stage].first_block,
          stage + 1 == route.stages.size() ? UINT32_MAX : route.stages[stage].end_block};
}

std::string problem_of_stages(const planner::Route& route, const ModuleConfig& module) {
  if (route.stages.size() > core::kMaxStages)
    return "has " + std::to_string(route.stages.size()) + " stages; at most " + std::to_string(core::kMaxStages) +
           " are run";
  if (route.stages.size() == 1) return {};
  const std::uint32_t end = route.stages.back().end_block;
  const planner::Profile& profile = module.profile;
  const bool profiled = !profile.rows.empty();
  if (profiled && end != profile.blocks)
    return "its stages end at block " + std::to_string(end) + ", but the profile has " +
           std::to_string(profile.blocks) + "; plan anew with the profile that the configuration names";
  if (module.executor != "emulated" && (!profiled || profile.cuts.size() + 1 != profile.blocks))
    return "has " + std::to_string(route.stages.size()) +
           " stages, but the module's profile does not say where its blocks meet; give the module the profile (leat "
           "profile --blocks) that the plan was made "
           "with";
  for (std::size_t s = 0; s + 1 < route.stages.size(); ++s) {
    const std::int64_t planned = route.stages[s].transfer_bytes,
                       measured = profiled ? profile.boundary_bytes[route.stages[s].end_block - 1] : planned;
    if (planned <= 0)
      return "stage " + std::to_string(s) + " hands nothing over (transfer_bytes is " + std::to_string(planned) +
             "); plan anew";
    if (planned != measured)
      return "stage " + std::to_string(s) + " hands over " + std::to_string(planned) + " bytes an item, but " +
             std::to_string(measured) + " by the profile; plan anew with the profile that the configuration names";
  }
  return {};
}

Result<std::vector<FeatureEdge>> edges_of(const Config& config, const planner::Plan& plan, const std::string& where) {
  std::vector<FeatureEdge> edges;
  std::vector<double> between;  // [edge]: items that its stages can have between them
  for (std::size_t r = 0; r < plan.routes.size(); ++r) {
    const planner::Route& route = plan.routes[r];
    double rate = 1e300;
    for (const planner::Stage& s : route.stages) rate = std::min(rate, rate_of(s));
    const double slo_s = static_cast<double>(config.applications[route.application].application.slo_ns) / 1e9;
    for (std::size_t s = 0; s + 1 < route.stages.size(); ++s) {
      const planner::Stage& stage = route.stages[s];
      std::uint32_t e = edge_at(edges, route.application, route.module, stage.end_block);
      if (e == UINT32_MAX) {
        e = static_cast<std::uint32_t>(edges.size());
        edges.push_back({.application = route.application,
                         .module = route.module,
                         .boundary = stage.end_block,
                         .spec = {.rows = 0, .scrap = 0, .row_bytes = static_cast<std::uint64_t>(stage.transfer_bytes)},
                         .from = {},
                         .to = {}});
        between.push_back(0);
      }
      FeatureEdge& edge = edges[e];
      if (edge.spec.row_bytes != static_cast<std::uint64_t>(stage.transfer_bytes))
        return Error{where + "route " + std::to_string(r) + ": hands over " + std::to_string(stage.transfer_bytes) +
                     " bytes an item at block " + std::to_string(edge.boundary) + ", another route of the module " +
                     std::to_string(edge.spec.row_bytes) + "; plan anew"};
      add(edge.from, stage.pool);
      add(edge.to, route.stages[s + 1].pool);
      edge.spec.scrap = std::max(edge.spec.scrap, route.batch);
      between[e] += rate * slo_s;
    }
  }
  if (edges.size() > shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::edge)])
    return Error{where + "cuts its modules at " + std::to_string(edges.size()) +
                 " places; at most 128 are served, plan with fewer stages"};
  std::uint64_t total = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    FeatureEdge& edge = edges[e];
    edge.number = static_cast<std::uint32_t>(e);
    const double rows = between[e] + 2.0 * edge.spec.scrap * static_cast<double>(edge.from.size() + edge.to.size());
    edge.spec.rows = static_cast<std::uint32_t>(std::min<double>(shm::kMaxFeatureRows, rows + 1));
    total += edge.spec.bytes();
    if (edge.spec.row_bytes > config.limits.feature_bytes || total > config.limits.feature_bytes)
      return Error{where + "the features between its stages need more than limits.feature_mib = " +
                   std::to_string(config.limits.feature_bytes >> 20) + " (" + name_of(edge, config) + ": " +
                   std::to_string(edge.spec.rows) + " items of " + text::bytes_text(edge.spec.row_bytes) + ", " +
                   mib(edge.spec) + " MiB); raise it, or plan with fewer stages"};
  }
  return edges;
}

void place_edges(const Config& config, const std::vector<PartitionConfig>& partitions,
                 std::span<const DevicePair> pairs, std::vector<FeatureEdge>& edges) {
  constexpr std::uint64_t kRowAlignment = 16;  // what a device's libraries ask of an address
  for (FeatureEdge& edge : edges) {
    const std::string& place = partitions[edge.from[0]].gpu.place;
    bool mapped = !place.empty() && edge.spec.row_bytes % kRowAlignment == 0 &&
                  config.applications[edge.application].modules[edge.module].executor == "onnx";
    for (const std::uint32_t from : edge.from) {
      mapped = mapped && partitions[from].gpu.place == place;
      for (const std::uint32_t to : edge.to) {
        DevicePair way = handover(partitions[from], partitions[to], pairs);
        mapped = mapped && way.way != Handover::host;
        const bool known = std::any_of(edge.ways.begin(), edge.ways.end(),
                                       [&](const DevicePair& w) { return w.from == way.from && w.to == way.to; });
        if (!known && !way.from.empty() && !way.to.empty()) edge.ways.push_back(std::move(way));
      }
    }
    if (mapped) edge.place = place;
  }
}

std::uint32_t edge_at(const std::vector<FeatureEdge>& edges, std::uint32_t application, std::uint32_t module,
                      std::uint32_t boundary) {
  for (std::uint32_t e = 0; e < edges.size(); ++e)
    if (edges[e].application == application && edges[e].module == module && edges[e].boundary == boundary) return e;
  return UINT32_MAX;
}

std::string name_of(const FeatureEdge& edge, const Config& config) {
  const planner::Application& app = config.applications[edge.application].application;
  return app.name + "/" + app.modules[edge.module].name + " cut " + std::to_string(edge.boundary);
}

}  // namespace leat::daemon
