// What a deployment cannot keep, said before it starts: SLOs that no route meets, rates that the partitions cannot
// carry, and expected streams that no schedule serves.
#include <algorithm>
#include <cmath>

#include "engine/core/model/schedulable.h"
#include "engine/core/policy/policy.h"
#include "engine/daemon/deployment/capacity/capacity.h"
#include "engine/daemon/deployment/capacity/objective.h"
#include "engine/daemon/deployment/deployment.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

// The work of one module's expected streams, stage by stage; where it has several routes the fastest speaks, so that
// what is found holds for any choice.
void add_demands(const Deployment& d, std::uint32_t a, std::uint32_t m, const ExpectedStream& stream,
                 std::vector<core::Demand>& out) {
  const planner::Module& module = d.applications[a].modules[m];
  const std::size_t first = out.size();
  for (const planner::Route& route : d.plan.routes) {
    if (route.application != a || route.module != m) continue;
    for (std::size_t k = 0; k < route.stages.size(); ++k) {
      const planner::Stage& stage = route.stages[k];
      if (out.size() <= first + k) {
        out.push_back({.name = d.applications[a].name + "/" + module.name,
                       .period_ns = stream.period_ns,
                       .max_age_ns = stream.max_age_ns,
                       .priority = stream.priority,
                       .count = stream.count * module.items_per_request,
                       .run_ns = INT64_MAX,
                       .item_ns = INT64_MAX,
                       .pool = {}});
      }
      core::Demand& demand = out[first + k];
      demand.pool.insert(demand.pool.end(), stage.pool.begin(), stage.pool.end());
      const planner::Latency& one = stage.latency_by_batch.front();
      if (one.p50_ns < demand.run_ns) {
        demand.run_ns = one.p50_ns;
        demand.safe_ns = one.p99_ns;
      }
      const double units = d.sizes.empty() ? 1 : d.sizes[d.first_module[a] + m].mean_units();
      const double most = units * demand.count, occupied = 1 - overlap_permille_of(d, route, k) / 1000.0;
      for (std::size_t b = 0; b < stage.latency_by_batch.size() && (b == 0 || static_cast<double>(b) < most); ++b) {
        const auto each = static_cast<double>(stage.latency_by_batch[b].p50_ns) / static_cast<double>(b + 1);
        demand.item_ns = std::min(demand.item_ns, static_cast<std::int64_t>(units * occupied * each));
      }
    }
  }
}

// Empty: as far as work goes the expected rates can be carried.
std::string too_much(const Deployment& d) {
  const Capacity c = capacity(d);
  if (c.load <= 1) return {};
  const auto percent = [](double part) { return std::to_string(std::llround(100 * part)) + " %"; };
  std::string where, parts;
  for (const std::uint32_t p : c.partitions) where += (where.empty() ? "" : ", ") + d.partitions[p].partition.name;
  for (std::size_t a = 0; a < c.part.size(); ++a) {
    if (c.part[a] < .005) continue;
    parts += (parts.empty() ? "'" : ", '") + d.applications[a].name + "' " + percent(c.part[a]);
  }
  return "unschedulable: the expected rates take at least " + percent(c.load) + " of the time of " +
         (c.partitions.size() == 1 ? "partition " : "partitions ") + where + " (" + parts +
         "), in the largest batches that the SLOs permit; at most " + percent(1 / c.load) +
         " of the requests can be in time: lower a rate, raise an SLO, use smaller models or more partitions";
}

std::vector<core::Finding> crowded(const Deployment& d) {
  std::vector<core::Demand> demands;
  std::vector<std::string> names;
  for (const auto& p : d.partitions) names.push_back(p.partition.name);
  for (std::uint32_t a = 0; a < d.expected.size(); ++a) {
    for (const ExpectedStream& stream : d.expected[a]) {
      for (std::uint32_t m = 0; m < d.applications[a].modules.size(); ++m) add_demands(d, a, m, stream, demands);
    }
  }
  return core::obstacles(demands, names, core::kPromiseMarginPermille);
}

}  // namespace

std::vector<std::string> unschedulable(const Deployment& d) {
  std::vector<std::string> out;
  for (std::uint32_t a = 0; a < d.applications.size(); ++a) {
    const Need need = need_of(d, a);
    const std::int64_t slo = d.applications[a].slo_ns;
    const std::string name = "application '" + d.applications[a].name + "' needs ",
                      remedy = "raise slo_ms, use faster partitions or a smaller model";
    if (need.least_ns > slo) {
      out.push_back(name + text::time_text(need.least_ns) + " on an idle host, more than its SLO of " +
                    text::time_text(slo) + "; " + remedy);
    } else if (need.largest_ns > slo) {
      out.push_back(name + text::time_text(need.largest_ns) +
                    " on an idle host for its largest pictures, more than its SLO of " + text::time_text(slo) +
                    ", though " + text::time_text(need.least_ns) + " for its smallest; " + remedy);
    }
  }
  const std::vector<core::Finding> findings = crowded(d);
  const bool said =
      std::ranges::any_of(findings, [](const core::Finding& f) { return f.obstacle == core::Obstacle::overload; });
  if (std::string line = said ? "" : too_much(d); !line.empty()) out.push_back(std::move(line));
  for (const core::Finding& f : findings) out.push_back(f.text);
  out.insert(out.end(), d.doubts.begin(), d.doubts.end());
  return out;
}

}  // namespace leat::daemon
