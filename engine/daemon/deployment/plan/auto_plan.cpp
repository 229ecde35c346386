#include "engine/daemon/deployment/plan/auto_plan.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "planner/child/solver_process.h"
#include "planner/io/profile_io.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;
// A directory that is gone with its owner.
struct Folder {
  std::string path;
  Folder() {
    std::error_code none;
    std::string name = (fs::temp_directory_path(none) / "leatd-plan-XXXXXX").string();
    if (!none && ::mkdtemp(name.data()) != nullptr) path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    if (!path.empty()) fs::remove_all(path, none);
  }
};

std::string model_of(const Config& config, std::size_t a, std::size_t m) {
  return config.applications[a].application.name + "." + config.applications[a].application.modules[m].name;
}

Json applications_json(const Config& config) {
  Json list = Json::array();
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    if (config.applications[a].retired) continue;
    const planner::Application& app = config.applications[a].application;
    Json entry = {{"name", app.name}, {"slo_ms", static_cast<double>(app.slo_ns) / 1e6}, {"weight", app.weight}};
    if (app.rate_rps > 0) entry["rate_rps"] = app.rate_rps;
    for (std::size_t m = 0; m < app.modules.size(); ++m) {
      const planner::Module& module = app.modules[m];
      Json after = Json::array();
      for (const std::uint32_t before : module.after) after.push_back(app.modules[before].name);
      entry["module"].push_back({{"name", module.name},
                                 {"model", model_of(config, a, m)},
                                 {"after", after},
                                 {"items_per_request", module.items_per_request},
                                 {"fan_out_cap", module.fan_out_cap}});
    }
    list.push_back(entry);
  }
  return {{"application", list}};
}

Json host_json(const Deployment& deployment) {
  Json list = Json::array();
  for (const PartitionConfig& p : deployment.partitions) {
    list.push_back({{"name", p.partition.name},
                    {"kind", planner::name_of(p.partition.kind)},
                    {"class", p.partition.partition_class},
                    {"size", p.partition.size},
                    {"price", p.partition.price}});
  }
  return {{"schema", "leat-host/1"}, {"partitions", list}};
}

// Empty where no partition's latency of it is known before the workers have measured.
planner::Profile profile_of(const Config& config, const Deployment& deployment, std::size_t a, std::size_t m) {
  planner::Profile out;
  out.model = model_of(config, a, m);
  for (const PartitionConfig& p : deployment.partitions) {
    const std::string& name = p.partition.partition_class;
    if (std::any_of(out.rows.begin(), out.rows.end(),
                    [&](const planner::ProfileRow& r) { return r.partition_class == name; }))
      continue;
    std::uint32_t batch = 0;
    for (planner::Latency latency : profiled(config.applications[a].modules[m], p.partition)) {
      latency.p50_ns = std::max<std::int64_t>(latency.p50_ns, 1000);
      latency.p99_ns = std::max(latency.p99_ns, latency.p50_ns);
      out.rows.push_back({name, 1, ++batch, {latency}});
    }
  }
  return out;
}

}  // namespace

Result<planner::PlanFile> auto_plan(const Config& config, const Deployment& deployment, const std::string& solver,
                                    std::chrono::milliseconds limit) {
  const Folder folder;
  std::error_code error;
  if (folder.path.empty() || !fs::create_directory(folder.path + "/profiles", error))
    return Error{"no directory for the planner's files can be made; check TMPDIR"};
  std::size_t count = 0;
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    for (std::size_t m = 0; !config.applications[a].retired && m < config.applications[a].modules.size(); ++m) {
      const planner::Profile profile = profile_of(config, deployment, a, m);
      if (profile.rows.empty())
        return Error{"module '" + model_of(config, a, m) + "' has no profile; name one, made by leat profile"};
      const Status written =
          planner::write_profile(folder.path + "/profiles/" + std::to_string(count++) + ".json", profile);
      if (!written) return Error{written.error()};
    }
  }
  for (const auto& [name, json] :
       {std::pair{"/applications.json", applications_json(config)}, std::pair{"/host.json", host_json(deployment)}}) {
    if (const Status written = write_text_file(folder.path + name, json.dump()); !written)
      return Error{written.error()};
  }
  const std::string plan = folder.path + "/plan.json";
  const planner::SolverRun run = planner::run_solver(
      {solver, "plan", "--application", folder.path + "/applications.json", "--host", folder.path + "/host.json",
       "--profiles", folder.path + "/profiles", "--rules", "leat", "-o", plan},
      limit);
  if (run.end != planner::SolverRun::End::done) return Error{run.message};
  return planner::read_plan(plan);
}

}  // namespace leat::daemon
