#include "bench/papers/shared_cells.h"

namespace leat::bench {
namespace {

using core::TimeNs;

constexpr double kMs = 1e6;
constexpr std::uint32_t kBatch = 32;

const Application kTm{400, {{20, .30, {}}, {12, .25, {0}}, {15, .30, {1}}}};
const Application kLv{500, {{18, .30, {}}, {10, .25, {0}}, {8, .20, {1}}, {9, .25, {2}}, {22, .35, {3}}}};
const Application kGa{600, {{16, .30, {}}, {10, .25, {0}}, {9, .20, {1}}, {8, .22, {2}}, {14, .30, {3}}}};
const Application kDa{420, {{18, .30, {}}, {10, .25, {0}}, {22, .35, {0}}, {8, .20, {1, 2}}, {9, .25, {3}}}};
const Application kDemo{500, {{14, .60, {}}, {2.5, .40, {0}, 9}}};

TimeNs run_ns(const Module& m, std::uint32_t b, double speed) {
  return static_cast<TimeNs>((m.d1_ms * (1 - m.f) + m.d1_ms * m.f * b) * kMs / speed);
}

}  // namespace

std::vector<Pipeline> pipelines() {
  Application urgent = kTm;
  urgent.priority = core::Priority::high;
  return {{"lv", {kLv}}, {"tm", {kTm}}, {"ga", {kGa}}, {"da", {kDa}}, {"demo", {kDemo}}, {"mixed", {kLv, urgent}}};
}

core::Topology topology_of(const Cell& c) {
  core::Topology t;
  t.partitions.resize(c.partitions);
  for (std::uint32_t a = 0; a < c.pipeline->applications.size(); ++a) {
    const Application& app = c.pipeline->applications[a];
    core::ApplicationSpec spec{.slo_ns = static_cast<TimeNs>(app.slo_ms * kMs), .rate_rps = 0, .modules = {}};
    const auto first = static_cast<core::ModuleId>(t.modules.size());
    for (const Module& m : app.modules) {
      const auto id = static_cast<core::ModuleId>(t.modules.size());
      core::ModuleSpec module{.application = a, .before = {}, .after = {}, .routes = {}};
      module.items_per_request = m.items;
      module.fan_out_cap = m.items > 1 ? 64 : 1;
      for (core::ModuleId before : m.before) {
        module.before.push_back(first + before);
        t.modules[first + before].after.push_back(id);
      }
      for (const bool slow : {false, true}) {
        core::RouteSpec route{.module = id, .batch = kBatch, .rate_rps = 0, .stages = {{.pool = {}, .latency = {}}}};
        for (std::uint32_t p = 0; p < c.partitions; ++p) {
          if ((c.unequal && p % 2 == 1) == slow) route.stages[0].pool.push_back(p);
        }
        if (route.stages[0].pool.empty()) continue;
        for (std::uint32_t b = 1; b <= kBatch; ++b)
          route.stages[0].latency.p50_ns.push_back(run_ns(m, b, slow ? .5 : 1));
        route.stages[0].latency.p99_ns = route.stages[0].latency.p50_ns;
        module.routes.push_back(static_cast<core::RouteId>(t.routes.size()));
        t.routes.push_back(route);
      }
      spec.modules.push_back(id);
      t.modules.push_back(module);
    }
    t.applications.push_back(spec);
  }
  return t;
}

double rate_of(const Cell& c, std::size_t application) {
  double cost_ms = 0;
  for (const Module& m : c.pipeline->applications[application].modules)
    cost_ms += m.items * static_cast<double>(run_ns(m, 10, 1)) / 10 / kMs;
  return c.speeds() / cost_ms * 1000 / static_cast<double>(c.pipeline->applications.size());
}

}  // namespace leat::bench
