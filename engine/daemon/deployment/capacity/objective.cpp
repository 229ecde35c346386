#include "engine/daemon/deployment/capacity/objective.h"

#include <algorithm>

#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kTimes = 3;  // what a request needs: for waiting, batches and a busy host
constexpr std::int64_t kMinObjectiveNs = 100'000'000;

}  // namespace

Need need_of(const Deployment& d, std::uint32_t a) {
  const std::vector<planner::Module>& modules = d.applications[a].modules;
  const auto fastest = [&](std::uint32_t m, std::size_t units) {
    std::int64_t least = INT64_MAX;
    for (const planner::Route& r : d.plan.routes) {
      if (r.application != a || r.module != m) continue;
      std::int64_t sum = 0;
      for (const planner::Stage& s : r.stages)
        sum += s.latency_by_batch[std::min(units, s.latency_by_batch.size()) - 1].p50_ns;
      least = std::min(least, sum);
    }
    return least == INT64_MAX ? 0 : least;
  };
  std::vector<Need> end(modules.size());  // earliest end of each module
  Need out;
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    for (const auto before : modules[m].after) {
      end[m].least_ns = std::max(end[m].least_ns, end[before].least_ns);
      end[m].largest_ns = std::max(end[m].largest_ns, end[before].largest_ns);
    }
    end[m].least_ns += fastest(m, 1);
    end[m].largest_ns += fastest(m, d.sizes.empty() ? 1 : d.sizes[d.first_module[a] + m].each());
    out.least_ns = std::max(out.least_ns, end[m].least_ns);
    out.largest_ns = std::max(out.largest_ns, end[m].largest_ns);
  }
  return out;
}

std::int64_t objective_for(std::int64_t need_ns) noexcept {
  const std::int64_t wanted = kTimes * need_ns;
  std::int64_t step = kMinObjectiveNs / 2;
  while (wanted > 20 * step) step *= 10;
  return std::max(kMinObjectiveNs, (wanted + step - 1) / step * step);
}

std::vector<std::string> choose_objectives(Config& config, Deployment& d, bool again) {
  std::vector<std::string> lines;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    if (!config.applications[a].slo_auto || config.applications[a].retired) continue;
    const Need need = need_of(d, a);
    const std::int64_t slo = objective_for(need.largest_ns);
    if (again && slo == d.applications[a].slo_ns) continue;
    config.applications[a].application.slo_ns = d.applications[a].slo_ns = slo;
    lines.push_back("application '" + d.applications[a].name + "': its objective is " + text::time_text(slo) +
                    " from capture to answer, by the " + text::time_text(need.largest_ns) +
                    " that one frame takes here; slo_ms sets another");
  }
  return lines;
}

}  // namespace leat::daemon
