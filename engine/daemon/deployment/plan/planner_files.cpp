#include "engine/daemon/deployment/plan/planner_files.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "planner/io/profile_io.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;

std::string model_of(const Config& config, std::size_t a, std::size_t m) {
  return config.applications[a].application.name + "." + config.applications[a].application.modules[m].name;
}

Json applications_json(const Config& config, std::span<const double> rates) {
  Json list = Json::array();
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    if (config.applications[a].retired) continue;
    const planner::Application& app = config.applications[a].application;
    Json entry = {{"name", app.name}, {"slo_ms", static_cast<double>(app.slo_ns) / 1e6}, {"weight", app.weight}};
    const double rate = rates.empty() ? app.rate_rps : rates[a];
    if (rate > 0) entry["rate_rps"] = rate;
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
    if (p.partition.memory_bytes > 0) list.back()["memory_bytes"] = p.partition.memory_bytes;
  }
  return {{"schema", "leat-host/1"}, {"partitions", list}};
}

// Empty where no partition's latency of it is known before the workers have measured.
planner::Profile profile_of(const Config& config, const Deployment& deployment, std::size_t a, std::size_t m) {
  planner::Profile out;
  out.model = model_of(config, a, m);
  if (const std::int64_t bytes = config.applications[a].modules[m].memory_bytes; bytes > 0)
    out.block_memory_bytes = {bytes};
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

PlannerFolder::PlannerFolder() {
  std::error_code none;
  std::string name = (fs::temp_directory_path(none) / "leatd-plan-XXXXXX").string();
  if (!none && ::mkdtemp(name.data()) != nullptr) path_ = name;
}

PlannerFolder::~PlannerFolder() {
  std::error_code none;
  if (!path_.empty()) fs::remove_all(path_, none);
}

Status PlannerFolder::write(const Config& config, const Deployment& deployment, std::span<const double> rates) const {
  std::error_code error;
  if (!path_.empty()) fs::create_directory(path_ + "/profiles", error);
  if (path_.empty() || error) return Error{"no directory for the planner's files can be made; check TMPDIR"};
  std::size_t count = 0;
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    for (std::size_t m = 0; !config.applications[a].retired && m < config.applications[a].modules.size(); ++m) {
      const planner::Profile profile = profile_of(config, deployment, a, m);
      if (profile.rows.empty())
        return Error{"module '" + model_of(config, a, m) + "' has no profile; name one, made by leat profile"};
      const Status written = planner::write_profile(path_ + "/profiles/" + std::to_string(count++) + ".json", profile);
      if (!written) return written;
    }
  }
  for (const auto& [name, json] : {std::pair{"/applications.json", applications_json(config, rates)},
                                   std::pair{"/host.json", host_json(deployment)}})
    if (Status written = write_text_file(path_ + name, json.dump()); !written) return written;
  return Done{};
}

std::vector<std::string> PlannerFolder::words(const std::string& solver, const std::string& output) const {
  return {solver,
          "plan",
          "--application",
          path_ + "/applications.json",
          "--host",
          path_ + "/host.json",
          "--profiles",
          path_ + "/profiles",
          "--rules",
          "leat",
          "-o",
          output};
}

planner::PlanFile plan_file_of(const Config& config, const Deployment& d) {
  planner::PlanFile out;
  std::vector<std::uint32_t> number(config.applications.size(), UINT32_MAX);
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    if (config.applications[a].retired) continue;
    number[a] = static_cast<std::uint32_t>(out.applications.size());
    out.applications.push_back(d.applications[a]);
    if (a < d.plan.budget_ns.size()) out.plan.budget_ns.push_back(d.plan.budget_ns[a]);
  }
  out.plan.partitions = d.plan.partitions;
  out.plan.hosts = d.plan.hosts;
  out.plan.certificate = d.plan.certificate;
  for (planner::Route route : d.plan.routes) {
    route.application = number[route.application];
    out.plan.routes.push_back(std::move(route));
  }
  return out;
}

}  // namespace leat::daemon
