#include "engine/daemon/deployment/worker_setups.h"

#include <algorithm>

#include "engine/worker/link/channel.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kTinyHopNs = 20'000;  // shorter than a wake

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
    if (setup.edges[i].edge == d.edges[edge].number && setup.edges[i].writes == writes) return i;
  const FeatureEdge& e = d.edges[edge];
  const PartitionConfig& here = d.partitions[d.setups.size()];
  const bool peer = !e.place.empty() && here.gpu.place != e.place;
  // Who makes it is decided at each start.
  setup.edges.push_back({.edge = e.number, .writes = writes, .device = !e.place.empty(), .peer = peer, .spec = e.spec});
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

}  // namespace

bool can_run(const PartitionConfig& partition, const ModuleConfig& module) {
  return module.executor == "emulated" || row_of(partition.partition.kind).place != planner::KindPlace::none;
}

namespace {

// All of a partition but its modules.
worker::Setup partition_setup(const Config& config, const PartitionConfig& partition) {
  worker::Setup out;
  out.partition = partition.partition.name;
  out.cores = partition.cores;
  out.device = device_setup(partition);
  out.user = config.workers.user;
  out.sandbox = config.workers.sandbox;
  // A driver opens its device files when it pins memory, which a stream that opens later asks for.
  if (!out.device.plugin.empty() && out.sandbox == worker::Sandbox::on) out.sandbox = worker::Sandbox::devices;
  out.overlap = config.workers.overlap;
  out.threads = static_cast<std::uint32_t>(std::max<std::size_t>(1, partition.cores.size()));
  return out;
}

// What a partition opens of a module.
std::vector<worker::ModuleSetup> sessions_of(const Config& config, const Deployment& d, std::uint32_t p,
                                             std::uint32_t a, std::uint32_t m, worker::Setup& setup) {
  if (config.applications[a].retired) return {};
  if (d.planned) return routed(config, d, p, a, m);
  const ApplicationConfig& app = config.applications[a];
  if (!can_run(d.partitions[p], app.modules[m])) return {};
  std::vector<worker::ModuleSetup> out = {module_setup(app, m, d.partitions[p], {})};
  out.back().batch = app.modules[m].batch;
  if (profiled(app.modules[m], d.partitions[p].partition).empty()) setup.calibrate = true;
  return out;
}

}  // namespace

Status make_setups(const Config& config, Deployment& d) {
  d.tiny_hops = true;
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    worker::Setup setup = partition_setup(config, d.partitions[p]);
    d.session_of.emplace_back();
    for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
      for (std::uint32_t m = 0; m < config.applications[a].modules.size(); ++m) {
        std::vector<worker::ModuleSetup> sessions = sessions_of(config, d, p, a, m, setup);
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

}  // namespace leat::daemon
