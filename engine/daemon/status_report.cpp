#include "engine/daemon/status_report.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "engine/worker/affinity.h"
#include "planner/plan_io.h"

namespace leat::daemon {

using nlohmann::json;

std::string status_report(const StatusFacts& f) {
  static constexpr const char* kStates[] = {"down", "starting", "up", "lost"};
  json partitions = json::array();
  for (std::uint32_t p = 0; p < f.supervisor.count(); ++p) {
    const auto& partition = f.deployment.partitions[p];
    partitions.push_back({{"name", partition.partition.name}, {"kind", planner::name_of(partition.partition.kind)}, {"class", partition.partition.partition_class},
                          {"cores", worker::cores_text(partition.cores)}, {"state", kStates[static_cast<std::size_t>(f.supervisor.state(p))]},
                          {"pid", f.supervisor.pid(p)}, {"restarts", f.supervisor.restarts(p)}});
  }
  json applications = json::array();
  for (std::uint32_t a = 0; a < f.config.applications.size(); ++a) {
    const auto& app = f.config.applications[a];
    json modules = json::array();
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      json latency = json::object();  // by class: p50 of a batch of 1, 2, ...
      for (const auto& r : f.deployment.plan.routes) {
        if (r.application != a || r.module != m) continue;
        json list = json::array();
        for (const auto& l : r.stages[0].latency_by_batch) list.push_back(static_cast<double>(l.p50_ns) / 1e6);
        latency[f.deployment.partitions[r.stages[0].pool[0]].partition.partition_class] = list;
      }
      modules.push_back({{"name", app.application.modules[m].name}, {"executor", app.modules[m].executor}, {"model", app.application.modules[m].model},
                         {"batch", app.modules[m].batch}, {"latency_ms", latency}});
    }
    applications.push_back({{"name", app.application.name}, {"slo_ms", static_cast<double>(app.application.slo_ns) / 1e6}, {"modules", modules}});
  }
  const json out = {{"version", LEAT_VERSION}, {"pid", getpid()}, {"phase", f.phase}, {"uptime_ms", f.uptime_ms}, {"config", f.config.file},
                    {"socket", f.config.socket}, {"event_loop", f.event_loop}, {"event_loop_note", f.event_loop_note}, {"preset", f.config.preset},
                    {"clients", f.clients},
                    {"scheduler", {{"cores", worker::cores_text(f.deployment.scheduler_cores)}, {"alone", f.deployment.scheduler_alone}}},
                    {"partitions", partitions}, {"applications", applications}, {"warnings", unschedulable(f.deployment)}};
  return out.dump();
}

}  // namespace leat::daemon
