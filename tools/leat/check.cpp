// leat check: would leatd start with a configuration, and what would it make of it here. Reads as leatd does and tries
// what leatd would try before it serves; models are loaded in workers of its own.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/daemon.h"
#include "engine/daemon/deployment/capacity/capacity.h"
#include "engine/daemon/deployment/capacity/objective.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/log.h"
#include "engine/daemon/workers/models/model_metadata.h"
#include "engine/daemon/workers/worker_binary.h"
#include "planner/io/plan_io.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cores/cores.h"
#include "tools/base/json/json.h"
#include "tools/base/text/units.h"
#include "tools/leat/commands.h"
#include "tools/leat/model_text.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    cli::json_option("print what was found as JSON in place of text, an object for each sound configuration"),
    cli::integer_option("seconds", "60", 1, 3600, "longest time for loading the models of one file", "S"),
    {.name = "socket",
     .type = cli::Type::path,
     .value = "PATH",
     .help = "where leatd would be told to serve instead of where the configuration says"},
    {.name = "worker",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "leat-worker to load models with; by default the one beside leat"},
};
constexpr cli::Positional kPositionals[] = {
    {.name = "CONFIG", .help = "configuration file of leatd (TOML); with several each is judged", .max = 1024}};
constexpr cli::Example kExamples[] = {
    {.line = "leat check shapes.toml", .text = "before the daemon is restarted with it"}};
constexpr cli::Command kCommand = {
    .name = "leat check",
    .summary = "says whether a configuration is sound and what leatd would start from it",
    .description =
        "Does what leatd does before it serves, with leatd's own code: reads the file, the profiles and the plan it "
        "names, looks at the cores and the memory of this machine, and loads the models in workers of its own, which "
        "end with it. No socket is taken and nothing is written; a leatd that serves meanwhile is not disturbed. A "
        "fault is the one line that leatd would end with: file, line, key, and what to do.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leatd(8), leat-doctor(1)",
    .exit_status = "0 when every configuration is sound, 2 otherwise.",
};

bool measured(const daemon::ModuleConfig& module, const daemon::Deployment& deployment) {
  return !deployment.partitions.empty() &&
         std::all_of(deployment.partitions.begin(), deployment.partitions.end(),
                     [&](const auto& p) { return !daemon::profiled(module, p.partition).empty(); });
}

bool all_measured(const daemon::Config& config, const daemon::Deployment& deployment) {
  for (const auto& application : config.applications) {
    for (const auto& module : application.modules) {
      if (!measured(module, deployment)) return false;
    }
  }
  return true;
}

// Who may connect, in words.
std::string door_of(const daemon::Config& config) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", config.socket_mode);
  std::string text = std::string("mode ") + mode + ", group " +
                     (config.socket_group ? std::to_string(*config.socket_group) : std::string("leatd's own"));
  const auto list = [&](const char* what, const std::vector<std::uint32_t>& ids) {
    std::string numbers;
    for (const auto id : ids) numbers += (numbers.empty() ? "" : " ") + std::to_string(id);
    if (!ids.empty()) text += std::string(", only ") + what + " " + numbers;
  };
  list("users", config.allow_uids);
  list("groups", config.allow_gids);
  return text;
}

// What the models turned out to be when they were loaded.
struct Tried {
  std::vector<std::vector<exec::Recognised>> recognised;  // [application][module]
  std::vector<worker::Ready> measured;                    // [partition]
};

// The latency of one frame, of the largest size, where it was measured now, on the fastest partition; null: it was not.
Json alone_ms(const daemon::Deployment& deployment, const Tried& tried, std::size_t application, std::size_t module) {
  std::int64_t min = INT64_MAX;
  for (std::size_t p = 0; p < tried.measured.size() && p < deployment.session_of.size(); ++p) {
    const std::uint32_t session = deployment.session_of[p][deployment.first_module[application] + module];
    const auto& rows = tried.measured[p].latency_by_batch;
    if (session < rows.size() && !rows[session].empty()) min = std::min(min, rows[session].front().p50_ns);
  }
  return min == INT64_MAX ? Json() : Json(static_cast<double>(min) / 1e6);
}

Json describe(const daemon::Config& config, const daemon::Deployment& deployment, const Tried& tried) {
  Json json = {{"file", config.file}, {"sound", true}, {"socket", config.socket}, {"preset", config.preset}};
  json["door"] = door_of(config);
  json["scheduler"] = {{"cores", cores_text(deployment.scheduler_cores)}, {"alone", deployment.scheduler_alone}};
  json["partitions"] = Json::array();
  for (const auto& partition : deployment.partitions) {
    json["partitions"].push_back({{"name", partition.partition.name},
                                  {"kind", planner::name_of(partition.partition.kind)},
                                  {"class", partition.partition.partition_class},
                                  {"cores", cores_text(partition.cores)}});
  }
  json["applications"] = Json::array();
  for (std::size_t a = 0; a < config.applications.size(); ++a) {
    const auto& application = config.applications[a];
    const auto slo_ms = static_cast<double>(application.application.slo_ns) / 1e6;
    Json entry = {{"name", application.application.name},
                  {"slo_ms", application.slo_auto ? Json("auto") : Json(slo_ms)},
                  {"objective_ms", application.slo_auto && deployment.plan.routes.empty() ? Json() : Json(slo_ms)},
                  {"modules", Json::array()}};
    for (std::size_t m = 0; m < application.modules.size(); ++m) {
      std::uint32_t batch = deployment.planned ? 0 : application.modules[m].batch;
      for (const auto& route : deployment.plan.routes)
        if (route.application == a && route.module == m)
          batch = std::max(
              batch, route.batch / (deployment.planned ? 1 : deployment.sizes[deployment.first_module[a] + m].each()));
      entry["modules"].push_back(
          {{"name", application.application.modules[m].name},
           {"executor", application.modules[m].executor},
           {"model", application.modules[m].model_path},
           {"batch", batch},
           {"latency", deployment.planned                             ? "from the plan"
                       : measured(application.modules[m], deployment) ? "profiled"
                                                                      : "measured when leatd starts"}});
      entry["modules"].back()["alone_ms"] = alone_ms(deployment, tried, a, m);
      entry["modules"].back().update(daemon::words_of(tried.recognised[a][m], application.modules[m]));
    }
    json["applications"].push_back(entry);
  }
  json["edges"] = Json::array();
  for (const auto& edge : deployment.edges)
    json["edges"].push_back({{"name", daemon::name_of(edge, config)},
                             {"slots", edge.spec.rows},
                             {"item_bytes", edge.spec.row_bytes},
                             {"memory_bytes", edge.spec.bytes()}});
  json["plan"] = deployment.planned ? config.plan_path
                 : config.plan_auto ? "asked of leat-plan when leatd starts"
                                    : "made from the profiles when leatd starts";
  const daemon::Capacity capacity = daemon::capacity(deployment);
  const bool known = deployment.planned || all_measured(config, deployment);
  json["load"] = known && capacity.load > 0 ? Json(capacity.load) : Json();
  json["warnings"] = config.warnings;
  for (const std::string& line : daemon::unschedulable(deployment)) json["warnings"].push_back(line);
  return json;
}

void print(const Json& json) {
  const std::string cores = json["scheduler"]["cores"].get<std::string>();
  std::printf("%s is sound\n  socket %s, %s\n  policy preset %s\n  scheduler on %s%s\n",
              json["file"].get<std::string>().c_str(), json["socket"].get<std::string>().c_str(),
              json["door"].get<std::string>().c_str(), json["preset"].get<std::string>().c_str(),
              cores.empty() ? "any core" : ("core " + cores).c_str(),
              json["scheduler"]["alone"].get<bool>() ? ", which it has to itself" : "");
  for (const Json& partition : json["partitions"]) {
    std::printf("  partition %-12s %s, class %s, cores %s\n", partition["name"].get<std::string>().c_str(),
                partition["kind"].get<std::string>().c_str(), partition["class"].get<std::string>().c_str(),
                partition["cores"].get<std::string>().c_str());
  }
  for (const Json& application : json["applications"]) {
    const auto text = [](const Json& ms) { return text::time_text(std::llround(ms.get<double>() * 1e6)); };
    std::string slo = "as leatd finds when it starts";
    if (application["slo_ms"].is_number()) {
      slo = text(application["slo_ms"]);
    } else if (application["objective_ms"].is_number()) {
      slo = text(application["objective_ms"]) + " by what one frame takes now; leatd sets it when it starts";
    }
    std::printf("  application %s, SLO %s\n", application["name"].get<std::string>().c_str(), slo.c_str());
    for (const Json& module : application["modules"]) {
      const std::string alone =
          module["alone_ms"].is_null() ? "" : "; one frame takes up to " + text(module["alone_ms"]);
      std::printf("    module %-14s %s %s, batches up to %u, latency %s%s\n", module["name"].get<std::string>().c_str(),
                  module["executor"].get<std::string>().c_str(), module["model"].get<std::string>().c_str(),
                  module["batch"].get<unsigned>(), module["latency"].get<std::string>().c_str(), alone.c_str());
      std::fputs(model_text(module).c_str(), stdout);
    }
  }
  for (const Json& edge : json["edges"]) {
    std::printf("  edge %-17s %u slots of %s, %s\n", edge["name"].get<std::string>().c_str(),
                edge["slots"].get<unsigned>(), text::bytes_text(edge["item_bytes"].get<std::uint64_t>()).c_str(),
                text::bytes_text(edge["memory_bytes"].get<std::uint64_t>()).c_str());
  }
  std::printf("  plan %s\n", json["plan"].get<std::string>().c_str());
  if (!json["load"].is_null())
    std::printf("  the expected rates take at least %.0f %% of the partitions' time\n",
                100 * json["load"].get<double>());
  for (const Json& warning : json["warnings"]) std::printf("  warning: %s\n", warning.get<std::string>().c_str());
}

// As leatd would start, up to where it would serve.
Result<Tried> try_to_start(const daemon::Config& config, const cli::Arguments& args) {
  daemon::DaemonOptions options;
  options.worker_binary = args.given("worker") ? args.text("worker") : daemon::find_worker();
  options.check_ns = args.integer("seconds") * 1'000'000'000;
  auto daemon = daemon::Daemon::create(config, options);
  if (!daemon.ok()) return Error{daemon.error()};
  if (auto status = (*daemon)->run(); !status.ok()) return Error{status.error()};
  return Tried{(*daemon)->recognised(), (*daemon)->measured()};
}

Result<Json> judge(const std::string& file, const cli::Arguments& args) {
  auto config = daemon::read_config(file);
  if (!config.ok()) return Error{config.error()};
  if (args.given("socket")) {
    config->socket = args.text("socket");
    config->socket_place.clear();
  }
  auto tried = try_to_start(*config, args);
  if (!tried.ok()) return Error{tried.error()};
  auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  auto deployment = daemon::deploy(*config, *cores);
  if (!deployment.ok()) return Error{deployment.error()};
  // With the latencies the routes are known too, and what they cannot keep can be said. Where leat-plan was asked its
  // routes were tried.
  if (config->plan_auto) tried->measured.assign(deployment->partitions.size(), {});
  if (!config->plan_auto || all_measured(*config, *deployment)) {
    if (auto status = daemon::complete_plan(*config, *deployment, tried->measured); !status)
      return Error{status.error()};
    (void)daemon::choose_objectives(*config, *deployment);
  }
  return describe(*config, *deployment, *tried);
}

int run(const cli::Arguments& args) {
  daemon::start_log("error");
  const cli::JsonOutput json(args);
  std::string objects;
  int exit_status = 0;
  for (const std::string& file : args.positionals()) {
    const Result<Json> found = judge(file, args);
    if (!found.ok()) {
      exit_status = cli::fail(kCommand.name, found.error());
      continue;
    }
    if (!json.alone()) print(*found);
    objects += found->dump(2) + "\n";
  }
  const int failed = objects.empty() ? 0 : json.write(objects);
  return failed != 0 ? failed : exit_status;
}

}  // namespace

extern const cli::Subcommand kLeatCheck;
const cli::Subcommand kLeatCheck = {.command = &kCommand, .run = run};

}  // namespace leat::tools
