#include "engine/daemon/deployment/deployment.h"

#include <algorithm>

#include "engine/daemon/deployment/plan/adopted_plan.h"
#include "engine/daemon/deployment/worker_setups.h"
#include "engine/worker/link/channel.h"
#include "planner/build/cpu_host.h"
#include "planner/io/plan_io.h"
#include "planner/profile_table.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

PartitionConfig cpu_partition(planner::Partition partition) {
  PartitionConfig out;
  out.cores = *parse_cores(partition.selector);  // of our own making, or looked at before
  out.partition = std::move(partition);
  return out;
}

// What an item takes of a core, of the application where that is the least.
double least_item_ns(const Config& config) {
  planner::Partition core;
  core.kind = planner::PartitionKind::cpu;
  core.partition_class = "cpu:1";
  double least = 1e18;
  for (const ApplicationConfig& app : config.applications) {
    planner::MeanItem mean;
    for (std::size_t m = 0; m < app.modules.size(); ++m)
      mean.add(app.application.modules[m].items_per_request, planner::item_ns(profiled(app.modules[m], core)));
    if (!app.retired) least = std::min(least, mean.ns());
  }
  return least;
}

// With `cpu = "auto"` the cores are cut as the plan says, where there is one that uses any, else as `--host auto` has
// it.
Result<std::vector<PartitionConfig>> resolve_partitions(const Config& config, std::span<const std::uint32_t> cores,
                                                        const planner::PlanFile* plan) {
  std::vector<PartitionConfig> out = config.partitions;
  if (!config.cpu_auto) return out;
  const std::string file = config.plan_path.empty() ? "the plan" : config.plan_path;
  bool cut = false;
  for (std::size_t i = 0; plan != nullptr && i < plan->plan.partitions.size(); ++i) {
    const planner::Partition& p = plan->plan.partitions[i];
    if (row_of(p.kind).place != planner::KindPlace::cores || p.selector.empty() ||
        std::any_of(out.begin(), out.end(), [&](const PartitionConfig& o) { return o.partition.name == p.name; }))
      continue;
    const auto own = parse_cores(p.selector);
    if (!own.ok()) return Error{file + ": partition '" + p.name + "': " + own.error()};
    for (const auto core : *own)
      if (std::find(cores.begin(), cores.end(), core) == cores.end())
        return Error{file + ": partition '" + p.name + "' is on core " + std::to_string(core) +
                     ", which this host does not offer; it offers " + cores_text(cores) + "; plan anew"};
    if (p.partition_class != "cpu:" + std::to_string(own->size()))
      return Error{file + ": partition '" + p.name + "' is of class '" + p.partition_class + "', but has " +
                   std::to_string(own->size()) + " cores; plan anew"};
    cut = true;
    out.push_back(cpu_partition(p));
  }
  if (cut) return out;
  std::vector<std::uint32_t> own;  // without the core that the configuration gives to the scheduler
  for (const auto core : cores)
    if (static_cast<std::int32_t>(core) != config.scheduler_core || cores.size() == 1) own.push_back(core);
  for (planner::Partition& p :
       planner::cpu_partitions(own, 1, config.scheduler_core >= 0 ? 1e18 : least_item_ns(config))) {
    p.device = static_cast<std::uint32_t>(out.size());
    out.push_back(cpu_partition(std::move(p)));
  }
  return out;
}

// The scheduler's core: as configured, else the last that no partition names; -1: they have them all.
std::int32_t choose_scheduler_core(const Config& config, std::span<const PartitionConfig> partitions,
                                   std::span<const std::uint32_t> cores) {
  if (config.scheduler_core >= 0) return config.scheduler_core;
  for (auto it = cores.rbegin(); it != cores.rend(); ++it) {
    const bool taken = std::any_of(partitions.begin(), partitions.end(), [&](const PartitionConfig& p) {
      return std::find(p.cores.begin(), p.cores.end(), *it) != p.cores.end();
    });
    if (!taken) return static_cast<std::int32_t>(*it);
  }
  return -1;
}

}  // namespace

std::vector<planner::Latency> profiled(const ModuleConfig& module, const planner::Partition& partition,
                                       BlockRange blocks) {
  const planner::Partition& p = partition;
  std::vector<planner::Latency> out;
  if (!module.profile.rows.empty()) {
    const planner::ProfileTable table(module.profile);  // fills the batches between the measured ones
    const std::uint32_t first = blocks.first, end = std::min(blocks.end, module.profile.blocks),
                        most = std::min(module.batch, table.largest_batch(p.partition_class, p.share));
    for (std::uint32_t b = 1; b <= most; ++b)
      out.push_back({table.p50_ns(p.partition_class, p.share, b, first, end),
                     table.p99_ns(p.partition_class, p.share, b, first, end),
                     table.samples(p.partition_class, p.share, b, first, end)});
  }
  if (!out.empty() || blocks != BlockRange{}) return out;
  const auto count = std::min<std::size_t>(module.batch, module.latency_by_batch.size());
  return {module.latency_by_batch.begin(), module.latency_by_batch.begin() + static_cast<std::ptrdiff_t>(count)};
}

namespace {

// The cores that the configuration names are there.
Status check_cores(const Config& config, std::span<const std::uint32_t> cores) {
  const auto usable = [&](std::uint32_t core) { return std::ranges::find(cores, core) != cores.end(); };
  for (const auto& p : config.partitions)
    for (const auto core : p.cores)
      if (!usable(core))
        return Error{p.cores_place + "partition '" + p.partition.name + "' names core " + std::to_string(core) +
                     ", which this host does not offer; it offers " + cores_text(cores)};
  if (config.scheduler_core >= 0 && !usable(static_cast<std::uint32_t>(config.scheduler_core)))
    return Error{config.scheduler_core_place + "this host does not offer core " +
                 std::to_string(config.scheduler_core) + "; it offers " + cores_text(cores)};
  return Done{};
}

void place_scheduler(const Config& config, std::span<const std::uint32_t> cores, Deployment& d) {
  const std::int32_t chosen = choose_scheduler_core(config, d.partitions, cores);
  if (chosen < 0) return;
  const auto core = static_cast<std::uint32_t>(chosen);
  d.scheduler_cores = {core};
  d.scheduler_alone = std::ranges::none_of(
      d.partitions, [&](const PartitionConfig& p) { return std::ranges::find(p.cores, core) != p.cores.end(); });
}

Status add_applications(const Config& config, Deployment& d) {
  std::uint32_t modules = 0;
  for (const auto& app : config.applications) {
    d.applications.push_back(app.application);
    d.expected.push_back(app.expected);
    d.first_module.push_back(modules);
    modules += static_cast<std::uint32_t>(app.modules.size());
    for (std::size_t m = 0; !app.retired && m < app.modules.size(); ++m)
      if (std::ranges::none_of(d.partitions, [&](const auto& p) { return can_run(p, app.modules[m]); }))
        return Error{app.modules[m].places.executor + "application '" + app.application.name + "', module '" +
                     app.application.modules[m].name + "': no partition can run the executor '" +
                     app.modules[m].executor + "'; add a cpu partition"};
  }
  if (modules > worker::kMaxModules)
    return Error{config.file + ": more than 64 modules; split the applications over several leatd"};
  return Done{};
}

}  // namespace

Result<Deployment> deploy(const Config& config, std::span<const std::uint32_t> cores, const planner::PlanFile* plan,
                          std::span<const DevicePair> pairs) {
  if (auto status = check_cores(config, cores); !status) return Error{status.error()};
  planner::PlanFile stored;
  if (plan == nullptr && !config.plan_path.empty()) {
    auto file = planner::read_plan(config.plan_path);
    if (!file.ok()) return Error{config.plan_place + file.error()};
    stored = std::move(*file);
    plan = &stored;
  }
  Deployment d;
  auto partitions = resolve_partitions(config, cores, plan);
  if (!partitions.ok()) return Error{partitions.error()};
  d.partitions = std::move(*partitions);
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) d.slots.push_back(p);
  place_scheduler(config, cores, d);
  if (auto status = add_applications(config, d); !status) return Error{status.error()};
  for (const auto& p : d.partitions) d.plan.partitions.push_back(p.partition);
  if (plan != nullptr)
    if (auto status = adopt_plan(config, *plan, pairs, d); !status) return Error{status.error()};
  if (auto status = make_setups(config, d); !status) return Error{status.error()};
  if (!config.plan_auto)
    if (std::string line = idle_setting(config, d); !line.empty()) return Error{line};
  return d;
}

std::uint32_t first_head(const ApplicationConfig& app, std::size_t m) {
  const bool named = !app.modules[m].labels.empty();
  std::size_t head = 0;
  for (std::size_t i = 0; i < app.modules.size(); ++i) {
    const std::size_t names = app.modules[i].labels.size();
    if (i < m || !named) head += names;
    if (i < m && !named && names == 0) head += LEAT_MAX_LABELS;
  }
  return static_cast<std::uint32_t>(head > 0 ? head - 1 : 0);
}

namespace {

// Of a worker's line about a module what comes behind the names of the module and its model.
std::string_view told_of(const worker::ModuleSetup& module, std::string_view line) {
  for (const std::string& name :
       {"module '" + module.application + "/" + module.name + "': ", module.model_path + ": "})
    if (line.starts_with(name)) line.remove_prefix(name.size());
  return line;
}

}  // namespace

Place place_of(const Config& config, const worker::ModuleSetup& module, const std::string& line) {
  for (const auto& app : config.applications) {
    if (app.application.name != module.application) continue;
    for (std::size_t m = 0; m < app.modules.size(); ++m) {
      if (app.application.modules[m].name != module.name) continue;
      const ModuleConfig::Places& at = app.modules[m].places;
      const std::string_view rest = told_of(module, line);
      if (rest.starts_with("as: ")) return at.as;
      if (rest.starts_with("preprocess: ")) return at.preprocess;
      if (rest.starts_with("postprocess: ")) return at.postprocess;
      if (rest.starts_with("labels: ")) return at.labels;
      if (rest.starts_with("executor ")) return at.executor;
      return module.executor == "emulated" ? at.module : at.model;
    }
  }
  return config.file + ": ";
}

std::string about_module(const Config& config, const worker::ModuleSetup& module, const std::string& line,
                         const std::string& where) {
  const std::string place = place_of(config, module, line);
  if (!config.made_from_model) return place + line + where;
  std::string_view told = told_of(module, line);  // an option's name stands in the place
  for (const std::string_view key : {"preprocess: ", "postprocess: ", "labels: "})
    if (told.starts_with(key) && place.ends_with(key)) told.remove_prefix(key.size());
  return place + std::string(told);
}

}  // namespace leat::daemon
