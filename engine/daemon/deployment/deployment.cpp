#include "engine/daemon/deployment/deployment.h"

#include <algorithm>
#include <map>

#include "engine/worker/link/affinity.h"
#include "engine/worker/link/channel.h"
#include "planner/build/cpu_host.h"
#include "planner/io/plan_io.h"
#include "planner/profile_table.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kLeastNs = 1000;      // the core's tables hold no zero times
constexpr std::int64_t kTinyHopNs = 20'000;  // shorter than a wake

bool can_run(const PartitionConfig& partition, const ModuleConfig& module) {
  return module.executor == "emulated" || row_of(partition.partition.kind).place != planner::KindPlace::none;
}

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
    least = std::min(least, mean.ns());
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

worker::ModuleSetup module_setup(const ApplicationConfig& app, std::size_t m, const PartitionConfig& partition,
                                 BlockRange blocks) {
  const ModuleConfig& config = app.modules[m];
  const planner::Module& module = app.application.modules[m];
  worker::ModuleSetup out;
  out.application = app.application.name;
  out.name = module.name;
  out.index = static_cast<std::uint32_t>(m);
  out.executor = config.executor;
  out.model_path = config.model_path;
  out.as = config.as;
  out.preprocess = config.preprocess;
  out.postprocess = config.postprocess;
  out.labels = config.labels;
  out.first_head = first_head(app, m);
  out.after_fan_out = !module.after.empty();
  out.extra = config.extra;
  out.first_block = blocks.first;
  out.end_block = blocks.end;
  if (blocks != BlockRange{}) out.cuts = config.profile.cuts;
  if (config.executor == "emulated") out.latency_by_batch = profiled(config, partition.partition, blocks);
  return out;
}

// Which partitions of a plan file run which module; refuses what this host or this engine has not.
Status adopt_plan(const Config& config, const planner::PlanFile* file, std::span<const DevicePair> pairs,
                  Deployment& d) {
  const auto trouble = [&](const std::string& text) {
    return Error{(config.plan_path.empty() ? "the plan: " : config.plan_place + config.plan_path + ": ") + text};
  };
  if (file->applications.size() != d.applications.size())
    return trouble("was made for " + std::to_string(file->applications.size()) +
                   " applications, the configuration has " + std::to_string(d.applications.size()) + "; plan anew");
  // The plan's application and module indexes become ours, by name.
  std::vector<std::uint32_t> app_of;
  std::vector<std::vector<std::uint32_t>> module_of;
  for (const auto& a : file->applications) {
    const auto ours =
        std::find_if(d.applications.begin(), d.applications.end(), [&](const auto& o) { return o.name == a.name; });
    if (ours == d.applications.end())
      return trouble("is for an application '" + a.name + "' the configuration does not have; plan anew");
    app_of.push_back(static_cast<std::uint32_t>(ours - d.applications.begin()));
    module_of.emplace_back();
    for (const auto& m : a.modules) {
      const auto mine =
          std::find_if(ours->modules.begin(), ours->modules.end(), [&](const auto& o) { return o.name == m.name; });
      if (mine == ours->modules.end())
        return trouble("application '" + a.name + "' has no module '" + m.name + "' in the configuration; plan anew");
      module_of.back().push_back(static_cast<std::uint32_t>(mine - ours->modules.begin()));
    }
  }
  std::vector<std::uint32_t> partition_of;
  for (const auto& p : file->plan.partitions) {
    const auto ours = std::find_if(d.partitions.begin(), d.partitions.end(),
                                   [&](const auto& o) { return o.partition.name == p.name; });
    if (ours == d.partitions.end())
      return trouble("uses the partition '" + p.name +
                     "', which this host's configuration does not have; add it, or plan anew");
    if (ours->partition.kind != p.kind || ours->partition.partition_class != p.partition_class)
      return trouble("partition '" + p.name + "' is " + planner::name_of(p.kind) + " of class '" + p.partition_class +
                     "' in the plan, but " + planner::name_of(ours->partition.kind) + " of class '" +
                     ours->partition.partition_class + "' here; plan anew");
    partition_of.push_back(static_cast<std::uint32_t>(ours - d.partitions.begin()));
    d.plan.partitions[partition_of.back()].host = p.host;
  }
  d.plan.hosts = file->plan.hosts;
  d.plan.certificate = file->plan.certificate;
  if (!file->plan.budget_ns.empty()) {
    d.plan.budget_ns.resize(d.applications.size());
    for (std::size_t a = 0; a < app_of.size() && a < file->plan.budget_ns.size(); ++a) {
      d.plan.budget_ns[app_of[a]].resize(d.applications[app_of[a]].modules.size());
      for (std::size_t m = 0; m < file->plan.budget_ns[a].size(); ++m)
        d.plan.budget_ns[app_of[a]][module_of[a][m]] = file->plan.budget_ns[a][m];
    }
  }
  for (std::size_t r = 0; r < file->plan.routes.size(); ++r) {
    planner::Route route = file->plan.routes[r];
    const std::string where = "route " + std::to_string(r) + ": ";
    if (route.batch > worker::kMaxBatch)
      return trouble(where + "has a batch of " + std::to_string(route.batch) + "; the largest is 64");
    route.module = module_of[route.application][route.module];
    route.application = app_of[route.application];
    const ModuleConfig& module = config.applications[route.application].modules[route.module];
    if (const std::string problem = problem_of_stages(route, module); !problem.empty()) return trouble(where + problem);
    for (auto& stage : route.stages) {
      for (auto& p : stage.pool) {
        p = partition_of[p];
        if (!can_run(d.partitions[p], module))
          return trouble(where + "puts the executor '" + module.executor + "' on the emulated partition '" +
                         d.partitions[p].partition.name + "'; plan anew");
      }
    }
    d.plan.routes.push_back(std::move(route));
  }
  auto edges =
      edges_of(config, d.plan, config.plan_path.empty() ? "the plan: " : config.plan_place + config.plan_path + ": ");
  if (!edges.ok()) return Error{edges.error()};
  d.edges = std::move(*edges);
  place_edges(config, d.partitions, pairs, d.edges);
  d.planned = true;
  return Done{};
}

// What a partition opens of a module by the plan's routes: one session for each block range, with the largest batch. An
// emulated stage imitates the plan where nothing else is known of it.
std::vector<worker::ModuleSetup> routed(const Config& config, const Deployment& d, std::uint32_t partition,
                                        std::uint32_t a, std::uint32_t m) {
  std::vector<worker::ModuleSetup> out;
  for (const planner::Route& r : d.plan.routes) {
    if (r.application != a || r.module != m) continue;
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      if (std::find(r.stages[s].pool.begin(), r.stages[s].pool.end(), partition) == r.stages[s].pool.end()) continue;
      const BlockRange blocks = blocks_of(r, s);
      auto at = std::find_if(out.begin(), out.end(), [&](const worker::ModuleSetup& o) {
        return BlockRange{o.first_block, o.end_block} == blocks;
      });
      if (at == out.end()) {
        out.push_back(module_setup(config.applications[a], m, d.partitions[partition], blocks));
        at = out.end() - 1;
      }
      at->batch = std::max(at->batch, r.batch);
      const bool unknown = config.applications[a].modules[m].executor == "emulated" &&
                           config.applications[a].modules[m].profile.rows.empty() && r.stages.size() > 1;
      if (unknown && at->latency_by_batch.size() < r.stages[s].latency_by_batch.size())
        at->latency_by_batch = r.stages[s].latency_by_batch;
    }
  }
  return out;
}

// Index in the setup of the edge at a boundary; the edge is added if it is not there yet.
std::uint32_t local_edge(const Deployment& d, worker::Setup& setup, std::uint32_t a, std::uint32_t m,
                         std::uint32_t boundary, bool writes) {
  const std::uint32_t edge = edge_at(d.edges, a, m, boundary);
  if (edge == UINT32_MAX) return worker::kNoEdge;
  for (std::uint32_t i = 0; i < setup.edges.size(); ++i)
    if (setup.edges[i].edge == edge && setup.edges[i].writes == writes) return i;
  const FeatureEdge& e = d.edges[edge];
  const PartitionConfig& here = d.partitions[d.setups.size()];
  const bool peer = !e.place.empty() && here.gpu.place != e.place;
  // Who makes it is decided at each start.
  setup.edges.push_back({.edge = edge, .writes = writes, .device = !e.place.empty(), .peer = peer, .spec = e.spec});
  if (!peer) return static_cast<std::uint32_t>(setup.edges.size() - 1);
  for (const std::uint32_t p : e.from)  // memory of a device that is not visible cannot be mapped
    for (auto& [key, value] : setup.device.environment)
      if (key == "CUDA_VISIBLE_DEVICES" && value.find(d.partitions[p].gpu.uuid) == std::string::npos)
        value += "," + d.partitions[p].gpu.uuid;
  return static_cast<std::uint32_t>(setup.edges.size() - 1);
}

// By CUDA its process sees this one device and, but for a share, nobody's MPS daemon: a path that does not exist says
// so.
worker::DeviceSetup device_setup(const PartitionConfig& p) {
  worker::DeviceSetup out;
  if (p.gpu.uuid.empty()) return out;
  out.plugin = p.gpu.plugin;
  out.uuid = p.gpu.uuid;
  if (row_of(p.partition.kind).place != planner::KindPlace::nvidia) return out;
  out.environment = {{"CUDA_VISIBLE_DEVICES", p.gpu.uuid}, {"CUDA_MPS_PIPE_DIRECTORY", "/nonexistent"}};
  const std::uint32_t all = p.gpu.multiprocessors;
  if (all != 0) out.multiprocessors_min = out.multiprocessors_max = all;
  if (p.gpu.percent == 0) return out;
  out.group = p.gpu.uuid;
  out.environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(p.gpu.percent));
  if (all == 0) return out;
  // Rounded by the hardware, by up to a cluster of them either way.
  constexpr std::uint32_t kRounding = 8;
  const std::uint32_t share = (all * p.gpu.percent + 99) / 100;
  out.multiprocessors_min = share > kRounding ? share - kRounding : 1;
  out.multiprocessors_max =
      std::min(share + (p.gpu.percent == 100 ? 0 : kRounding), all - (p.gpu.percent < 93 ? 1 : 0));
  return out;
}

Status make_setups(const Config& config, Deployment& d) {
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    worker::Setup setup;
    setup.partition = d.partitions[p].partition.name;
    setup.cores = d.partitions[p].cores;
    setup.device = device_setup(d.partitions[p]);
    setup.user = config.workers.user;
    setup.sandbox = config.workers.sandbox;
    // A driver opens its device files when it pins memory, which a stream that opens later asks for.
    if (!setup.device.plugin.empty() && setup.sandbox == worker::Sandbox::on) setup.sandbox = worker::Sandbox::devices;
    setup.threads = static_cast<std::uint32_t>(std::max<std::size_t>(1, d.partitions[p].cores.size()));
    d.session_of.emplace_back();
    for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
      const auto& app = config.applications[a];
      for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
        std::vector<worker::ModuleSetup> sessions;
        if (d.planned) {
          sessions = routed(config, d, p, a, m);
        } else if (can_run(d.partitions[p], app.modules[m])) {
          sessions.push_back(module_setup(app, m, d.partitions[p], {}));
          sessions.back().batch = app.modules[m].batch;
          if (profiled(app.modules[m], d.partitions[p].partition).empty()) setup.calibrate = true;
        }
        d.session_of.back().push_back(sessions.empty() ? UINT32_MAX : static_cast<std::uint32_t>(setup.modules.size()));
        for (worker::ModuleSetup& s : sessions) {
          s.edge_in = local_edge(d, setup, a, m, s.first_block, false);
          s.edge_out = local_edge(d, setup, a, m, s.end_block, true);
          d.tiny_hops = d.tiny_hops && !s.latency_by_batch.empty() && s.latency_by_batch.front().p50_ns < kTinyHopNs;
          setup.modules.push_back(std::move(s));
        }
      }
    }
    if (setup.modules.size() > worker::kMaxModules)
      return Error{config.file + ": partition '" + setup.partition + "' would hold " +
                   std::to_string(setup.modules.size()) + " models or parts of them; at most 64, plan with fewer"};
    d.setups.push_back(std::move(setup));
  }
  return Done{};
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

Result<Deployment> deploy(const Config& config, std::span<const std::uint32_t> cores, const planner::PlanFile* plan,
                          std::span<const DevicePair> pairs) {
  Deployment d;
  const auto usable = [&](std::uint32_t core) { return std::find(cores.begin(), cores.end(), core) != cores.end(); };
  for (const auto& p : config.partitions)
    for (const auto core : p.cores)
      if (!usable(core))
        return Error{p.cores_place + "partition '" + p.partition.name + "' names core " + std::to_string(core) +
                     ", which this host does not offer; it offers " + cores_text(cores)};
  if (config.scheduler_core >= 0 && !usable(static_cast<std::uint32_t>(config.scheduler_core)))
    return Error{config.scheduler_core_place + "this host does not offer core " +
                 std::to_string(config.scheduler_core) + "; it offers " + cores_text(cores)};
  planner::PlanFile stored;
  if (plan == nullptr && !config.plan_path.empty()) {
    auto file = planner::read_plan(config.plan_path);
    if (!file.ok()) return Error{config.plan_place + file.error()};
    stored = std::move(*file);
    plan = &stored;
  }
  auto partitions = resolve_partitions(config, cores, plan);
  if (!partitions.ok()) return Error{partitions.error()};
  d.partitions = std::move(*partitions);
  const std::int32_t scheduler_core = choose_scheduler_core(config, d.partitions, cores);
  if (scheduler_core >= 0) d.scheduler_cores = {static_cast<std::uint32_t>(scheduler_core)};
  d.scheduler_alone =
      scheduler_core >= 0 && std::none_of(d.partitions.begin(), d.partitions.end(), [&](const PartitionConfig& p) {
        return std::find(p.cores.begin(), p.cores.end(), static_cast<std::uint32_t>(scheduler_core)) != p.cores.end();
      });
  std::uint32_t modules = 0;
  for (const auto& app : config.applications) {
    d.applications.push_back(app.application);
    d.expected.push_back(app.expected);
    d.first_module.push_back(modules);
    modules += static_cast<std::uint32_t>(app.modules.size());
    for (std::size_t m = 0; m < app.modules.size(); ++m)
      if (std::none_of(d.partitions.begin(), d.partitions.end(),
                       [&](const auto& p) { return can_run(p, app.modules[m]); }))
        return Error{app.modules[m].places.executor + "application '" + app.application.name + "', module '" +
                     app.application.modules[m].name + "': no partition can run the executor '" +
                     app.modules[m].executor + "'; add a cpu partition"};
  }
  if (modules > worker::kMaxModules)
    return Error{config.file + ": more than 64 modules; split the applications over several leatd"};
  for (const auto& p : d.partitions) d.plan.partitions.push_back(p.partition);
  if (plan != nullptr)
    if (auto status = adopt_plan(config, plan, pairs, d); !status) return Error{status.error()};
  d.tiny_hops = true;
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

std::uint32_t session(const Deployment& d, std::uint32_t partition, std::uint32_t application, std::uint32_t module,
                      BlockRange blocks) {
  const auto& sessions = d.setups[partition].modules;
  for (std::uint32_t s = d.session_of[partition][d.first_module[application] + module]; s < sessions.size(); ++s)
    if (sessions[s].application == d.applications[application].name &&
        sessions[s].name == d.applications[application].modules[module].name &&
        BlockRange{sessions[s].first_block, sessions[s].end_block} == blocks)
      return s;
  return UINT32_MAX;
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

namespace {

// One module's latencies on one partition, from its profile or as the worker measured them.
MeasuredSizes measured(const ModuleConfig& module, const planner::Partition& partition, const worker::Ready& ready,
                       std::uint32_t session) {
  MeasuredSizes out;
  out.rows = profiled(module, partition);
  for (const planner::SizeRow& row : module.profile.sizes)
    if (!out.rows.empty() && row.partition_class == partition.partition_class && row.share == partition.share)
      out.by_size.push_back(row.latency);
  if (!out.rows.empty() || session >= ready.latency_by_batch.size()) return out;
  out.rows = ready.latency_by_batch[session];
  if (session < ready.latency_by_size.size()) out.by_size = ready.latency_by_size[session];
  return out;
}

// The words in force: the configuration's, or those that the model's own file says.
const std::string& preprocess_of(const ModuleConfig& module, const worker::Ready& ready, std::uint32_t session) {
  const bool known = session < ready.recognised.size() && !ready.recognised[session].preprocess.words.empty();
  return known ? ready.recognised[session].preprocess.words : module.preprocess;
}

bool doubtful(const worker::Ready& ready) { return ready.undisturbed_percent < worker::kUndisturbedPercent; }

bool same_class(const PartitionConfig& a, const PartitionConfig& b) {
  return a.partition.partition_class == b.partition.partition_class;
}

}  // namespace

Status complete_plan(const Config& config, Deployment& d, std::span<const worker::Ready> ready) {
  const bool first = d.sizes.empty();
  d.doubts.clear();
  if (!d.planned) d.plan.routes.clear();
  for (std::uint32_t p = 0; p < ready.size() && p < d.partitions.size(); ++p) {
    if (!doubtful(ready[p])) continue;
    d.doubts.push_back("partition '" + d.partitions[p].partition.name +
                       "': while its models were measured something else took " +
                       std::to_string(100 - ready[p].undisturbed_percent) +
                       " % of its core, so their times are too long; they are measured again once it is idle, and what "
                       "batches really take corrects them meanwhile");
  }
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    const auto& app = config.applications[a];
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      ModuleSizes& sizes = first ? d.sizes.emplace_back() : d.sizes[d.first_module[a] + m];
      std::vector<MeasuredSizes> known;
      std::vector<std::uint32_t> pool;
      const std::string* words = &app.modules[m].preprocess;
      const bool crops = !app.application.modules[m].after.empty();
      for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
        const std::uint32_t session = d.session_of[p][d.first_module[a] + m];
        if (session == UINT32_MAX) continue;
        if (p < ready.size()) words = &preprocess_of(app.modules[m], ready[p], session);
        if (d.planned) continue;
        known.push_back(measured(app.modules[m], d.partitions[p].partition, ready[p], session));
        pool.push_back(p);
        if (known.back().rows.empty())
          return Error{app.modules[m].places.profile + "partition '" + d.partitions[p].partition.name +
                       "' has no latency of module '" + app.application.modules[m].name +
                       "': name a profile that has its class '" + d.partitions[p].partition.partition_class + "'"};
      }
      if (first) sizes = divide_sizes(*words, crops, known);
      if (d.planned) continue;  // a plan counts pictures
      // The slowest partition speaks for its class; none of which this is in doubt while there are others.
      std::map<std::string, planner::Route> by_class;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        planner::Route& route = by_class[d.partitions[pool[i]].partition.partition_class];
        if (route.stages.empty()) route.stages.resize(1);
        planner::Stage& stage = route.stages[0];
        stage.pool.push_back(pool[i]);
        if (doubtful(ready[pool[i]]) && std::ranges::any_of(pool, [&](std::uint32_t p) {
              return same_class(d.partitions[p], d.partitions[pool[i]]) && !doubtful(ready[p]);
            }))
          continue;
        const std::vector<planner::Latency> latency = sizes.table(known[i]);
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
        route.rate_rps = static_cast<double>(route.batch) / sizes.mean_units() * 1e9 /
                         static_cast<double>(last.p50_ns) * static_cast<double>(route.stages[0].pool.size());
        d.plan.routes.push_back(std::move(route));
      }
    }
  }
  return Done{};
}

}  // namespace leat::daemon
