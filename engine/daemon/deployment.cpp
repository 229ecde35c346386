#include "engine/daemon/deployment.h"

#include <algorithm>
#include <map>

#include "engine/worker/affinity.h"
#include "engine/worker/channel.h"
#include "planner/plan_io.h"
#include "planner/profile_table.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kLeastNs = 1000;            // the core's tables hold no zero times
constexpr std::int64_t kTinyHopNs = 20'000;        // shorter than a wake

bool can_run(const PartitionConfig& partition, const ModuleConfig& module) {
  return module.executor == "emulated" || partition.partition.kind != planner::PartitionKind::emulated;
}

std::vector<PartitionConfig> resolve_partitions(const Config& config, std::span<const std::uint32_t> cores, std::int32_t scheduler_core) {
  std::vector<PartitionConfig> out = config.partitions;
  if (!config.cpu_auto) return out;
  for (const auto core : cores) {
    if (static_cast<std::int32_t>(core) == scheduler_core && cores.size() > 1) continue;
    PartitionConfig p;
    p.partition.name = "cpu" + std::to_string(core);
    p.partition.kind = planner::PartitionKind::cpu;
    p.partition.partition_class = "cpu:1";
    p.partition.device = static_cast<std::uint32_t>(out.size());
    p.partition.selector = std::to_string(core);
    p.cores = {core};
    out.push_back(std::move(p));
  }
  return out;
}

// The scheduler's core: as configured, else the last that no partition names.
std::int32_t choose_scheduler_core(const Config& config, std::span<const std::uint32_t> cores) {
  if (config.scheduler_core >= 0) return config.scheduler_core;
  for (auto it = cores.rbegin(); it != cores.rend(); ++it) {
    const bool taken = std::any_of(config.partitions.begin(), config.partitions.end(), [&](const PartitionConfig& p) {
      return std::find(p.cores.begin(), p.cores.end(), *it) != p.cores.end();
    });
    if (!taken) return static_cast<std::int32_t>(*it);
  }
  return -1;
}

worker::ModuleSetup module_setup(const ApplicationConfig& app, std::size_t m, const PartitionConfig& partition) {
  const ModuleConfig& config = app.modules[m];
  const planner::Module& module = app.application.modules[m];
  worker::ModuleSetup out;
  out.application = app.application.name;
  out.name = module.name;
  out.executor = config.executor;
  out.model_path = config.model_path;
  out.preprocess = config.preprocess;
  out.postprocess = config.postprocess;
  out.labels = config.labels;
  out.after_fan_out = !module.after.empty();
  for (const auto& later : app.application.modules)
    if (std::find(later.after.begin(), later.after.end(), m) != later.after.end()) out.fan_out_cap = std::max(out.fan_out_cap, later.fan_out_cap);
  out.extra = config.extra;
  if (config.executor == "emulated") out.latency_by_batch = profiled(config, partition.partition);
  return out;
}

// Which partitions of a plan file run which module; refuses what this host or this engine has not.
Status adopt_plan(const Config& config, const planner::PlanFile* file, Deployment& d) {
  const auto trouble = [&](const std::string& text) { return Error{(config.plan_path.empty() ? "the plan" : config.plan_path) + ": " + text}; };
  if (file->applications.size() != d.applications.size()) return trouble("was made for " + std::to_string(file->applications.size()) + " applications, the configuration has " + std::to_string(d.applications.size()) + "; plan anew");
  // The plan's application and module indexes become ours, by name.
  std::vector<std::uint32_t> app_of;
  std::vector<std::vector<std::uint32_t>> module_of;
  for (const auto& a : file->applications) {
    const auto ours = std::find_if(d.applications.begin(), d.applications.end(), [&](const auto& o) { return o.name == a.name; });
    if (ours == d.applications.end()) return trouble("is for an application '" + a.name + "' the configuration does not have; plan anew");
    app_of.push_back(static_cast<std::uint32_t>(ours - d.applications.begin()));
    module_of.emplace_back();
    for (const auto& m : a.modules) {
      const auto mine = std::find_if(ours->modules.begin(), ours->modules.end(), [&](const auto& o) { return o.name == m.name; });
      if (mine == ours->modules.end()) return trouble("application '" + a.name + "' has no module '" + m.name + "' in the configuration; plan anew");
      module_of.back().push_back(static_cast<std::uint32_t>(mine - ours->modules.begin()));
    }
  }
  std::vector<std::uint32_t> partition_of;
  for (const auto& p : file->plan.partitions) {
    const auto ours = std::find_if(d.partitions.begin(), d.partitions.end(), [&](const auto& o) { return o.partition.name == p.name; });
    if (ours == d.partitions.end()) return trouble("uses the partition '" + p.name + "', which this host's configuration does not have; add it, or plan anew");
    if (ours->partition.kind != p.kind || ours->partition.partition_class != p.partition_class)
      return trouble("partition '" + p.name + "' is " + planner::name_of(p.kind) + " of class '" + p.partition_class + "' in the plan, but " + planner::name_of(ours->partition.kind) + " of class '" + ours->partition.partition_class + "' here; plan anew");
    partition_of.push_back(static_cast<std::uint32_t>(ours - d.partitions.begin()));
  }
  d.plan.hosts = file->plan.hosts;
  d.plan.certificate = file->plan.certificate;
  if (!file->plan.budget_ns.empty()) {
    d.plan.budget_ns.resize(d.applications.size());
    for (std::size_t a = 0; a < app_of.size() && a < file->plan.budget_ns.size(); ++a) {
      d.plan.budget_ns[app_of[a]].resize(d.applications[app_of[a]].modules.size());
      for (std::size_t m = 0; m < file->plan.budget_ns[a].size(); ++m) d.plan.budget_ns[app_of[a]][module_of[a][m]] = file->plan.budget_ns[a][m];
    }
  }
  for (std::size_t r = 0; r < file->plan.routes.size(); ++r) {
    planner::Route route = file->plan.routes[r];
    const std::string where = "route " + std::to_string(r) + ": ";
    if (route.stages.size() != 1) return trouble(where + "has " + std::to_string(route.stages.size()) + " stages; this leatd runs unsplit models, plan with one stage");
    if (route.batch > worker::kMaxBatch) return trouble(where + "has a batch of " + std::to_string(route.batch) + "; the largest is 64");
    route.module = module_of[route.application][route.module];
    route.application = app_of[route.application];
    const ModuleConfig& module = config.applications[route.application].modules[route.module];
    for (auto& p : route.stages[0].pool) {
      p = partition_of[p];
      if (!can_run(d.partitions[p], module)) return trouble(where + "puts the executor '" + module.executor + "' on the emulated partition '" + d.partitions[p].partition.name + "'; plan anew");
    }
    d.plan.routes.push_back(std::move(route));
  }
  d.planned = true;
  return Done{};
}

// The largest batch that a plan's routes run of a module on a partition; 0: none does.
std::uint32_t routed_batch(const Deployment& d, std::uint32_t partition, std::uint32_t application, std::uint32_t module) {
  std::uint32_t most = 0;
  for (const planner::Route& r : d.plan.routes) {
    const auto& pool = r.stages[0].pool;
    if (r.application == application && r.module == module && std::find(pool.begin(), pool.end(), partition) != pool.end()) most = std::max(most, r.batch);
  }
  return most;
}

void make_setups(const Config& config, Deployment& d) {
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    worker::Setup setup;
    setup.partition = d.partitions[p].partition.name;
    setup.cores = d.partitions[p].cores;
    setup.threads = static_cast<std::uint32_t>(std::max<std::size_t>(1, d.partitions[p].cores.size()));
    d.session_of.emplace_back();
    for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
      const auto& app = config.applications[a];
      for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
        const std::uint32_t batch = d.planned ? routed_batch(d, p, a, m) : app.modules[m].batch;
        const bool here = can_run(d.partitions[p], app.modules[m]) && batch > 0;
        d.session_of.back().push_back(here ? static_cast<std::uint32_t>(setup.modules.size()) : UINT32_MAX);
        if (!here) continue;
        setup.modules.push_back(module_setup(app, m, d.partitions[p]));
        setup.modules.back().batch = batch;
        if (!d.planned && profiled(app.modules[m], d.partitions[p].partition).empty()) setup.calibrate = true;
        const auto& latency = setup.modules.back().latency_by_batch;
        d.tiny_hops = d.tiny_hops && !latency.empty() && latency.front().p50_ns < kTinyHopNs;
      }
    }
    d.setups.push_back(std::move(setup));
  }
}

}  // namespace

std::vector<planner::Latency> profiled(const ModuleConfig& module, const planner::Partition& partition) {
  const planner::Partition& p = partition;
  std::vector<planner::Latency> out;
  if (!module.profile.rows.empty()) {
    const planner::ProfileTable table(module.profile);  // fills the batches between the measured ones
    const std::uint32_t end = module.profile.blocks, most = std::min(module.batch, table.largest_batch(p.partition_class, p.share));
    for (std::uint32_t b = 1; b <= most; ++b)
      out.push_back({table.p50_ns(p.partition_class, p.share, b, 0, end), table.p99_ns(p.partition_class, p.share, b, 0, end), table.samples(p.partition_class, p.share, b, 0, end)});
  }
  if (!out.empty()) return out;
  const auto count = std::min<std::size_t>(module.batch, module.latency_by_batch.size());
  return {module.latency_by_batch.begin(), module.latency_by_batch.begin() + static_cast<std::ptrdiff_t>(count)};
}

Result<Deployment> deploy(const Config& config, std::span<const std::uint32_t> cores, const planner::PlanFile* plan) {
  Deployment d;
  const auto usable = [&](std::uint32_t core) { return std::find(cores.begin(), cores.end(), core) != cores.end(); };
  for (const auto& p : config.partitions)
    for (const auto core : p.cores)
      if (!usable(core)) return Error{config.file + ": partition '" + p.partition.name + "' names core " + std::to_string(core) + ", which this host does not offer; it offers " + worker::cores_text(cores)};
  if (config.scheduler_core >= 0 && !usable(static_cast<std::uint32_t>(config.scheduler_core)))
    return Error{config.file + ": daemon.scheduler_core: this host does not offer core " + std::to_string(config.scheduler_core) + "; it offers " + worker::cores_text(cores)};
  const std::int32_t scheduler_core = choose_scheduler_core(config, cores);
  d.partitions = resolve_partitions(config, cores, scheduler_core);
  if (scheduler_core >= 0) d.scheduler_cores = {static_cast<std::uint32_t>(scheduler_core)};
  d.scheduler_alone = scheduler_core >= 0 && std::none_of(d.partitions.begin(), d.partitions.end(), [&](const PartitionConfig& p) {
    return std::find(p.cores.begin(), p.cores.end(), static_cast<std::uint32_t>(scheduler_core)) != p.cores.end();
  });
  std::uint32_t modules = 0;
  for (const auto& app : config.applications) {
    d.applications.push_back(app.application);
    d.expected.push_back(app.expected);
    d.first_module.push_back(modules);
    modules += static_cast<std::uint32_t>(app.modules.size());
    for (std::size_t m = 0; m < app.modules.size(); ++m)
      if (std::none_of(d.partitions.begin(), d.partitions.end(), [&](const auto& p) { return can_run(p, app.modules[m]); }))
        return Error{config.file + ": application '" + app.application.name + "', module '" + app.application.modules[m].name + "': no partition can run the executor '" + app.modules[m].executor + "'; add a cpu partition"};
  }
  if (modules > worker::kMaxModules) return Error{config.file + ": more than 64 modules; split the applications over several leatd"};
  for (const auto& p : d.partitions) d.plan.partitions.push_back(p.partition);
  planner::PlanFile stored;
  if (plan == nullptr && !config.plan_path.empty()) {
    auto file = planner::read_plan(config.plan_path);
    if (!file.ok()) return Error{file.error()};
    stored = std::move(*file);
    plan = &stored;
  }
  if (plan != nullptr)
    if (auto status = adopt_plan(config, plan, d); !status) return Error{status.error()};
  d.tiny_hops = true;
  make_setups(config, d);
  return d;
}

Status complete_plan(const Config& config, Deployment& d, std::span<const worker::Ready> ready) {
  if (d.planned) return Done{};
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    const auto& app = config.applications[a];
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      std::map<std::string, planner::Route> by_class;  // the slowest partition speaks for its class
      for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
        const std::uint32_t session = d.session_of[p][d.first_module[a] + m];
        if (session == UINT32_MAX) continue;
        auto latency = profiled(app.modules[m], d.partitions[p].partition);
        if (latency.empty() && session < ready[p].latency_by_batch.size()) latency = ready[p].latency_by_batch[session];
        if (latency.empty()) return Error{"partition '" + d.partitions[p].partition.name + "' has no latency of module '" + app.application.modules[m].name + "': name a profile that has its class '" + d.partitions[p].partition.partition_class + "'"};
        planner::Route& route = by_class[d.partitions[p].partition.partition_class];
        if (route.stages.empty()) route.stages.resize(1);
        planner::Stage& stage = route.stages[0];
        stage.pool.push_back(p);
        stage.latency_by_batch.resize(std::max(stage.latency_by_batch.size(), latency.size()));
        for (std::size_t b = 0; b < latency.size(); ++b) {
          planner::Latency& into = stage.latency_by_batch[b];
          into.p50_ns = std::max({into.p50_ns, latency[b].p50_ns, kLeastNs});
          into.p99_ns = std::max({into.p99_ns, latency[b].p99_ns, into.p50_ns});
          into.samples += latency[b].samples;
        }
      }
      for (auto& [name, route] : by_class) {
        route.application = a;
        route.module = m;
        route.batch = static_cast<std::uint32_t>(route.stages[0].latency_by_batch.size());
        const auto& last = route.stages[0].latency_by_batch.back();
        route.rate_rps = static_cast<double>(route.batch) * 1e9 / static_cast<double>(last.p50_ns) * static_cast<double>(route.stages[0].pool.size());
        d.plan.routes.push_back(std::move(route));
      }
    }
  }
  return Done{};
}

}  // namespace leat::daemon
