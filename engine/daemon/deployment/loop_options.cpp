#include "engine/daemon/deployment/loop_options.h"

#include <algorithm>

#include "tools/base/cores/core_count.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kCoresToSpare = 4;
// A hand-over costs some tens of microseconds; in work longer than this nobody sees them.
constexpr std::int64_t kShortNs = 4'000'000;

void number_stages(const Config& config, const Deployment& d, std::uint32_t slots, PlanTables& tables) {
  tables.takes_frames.resize(config.applications.size());
  tables.session_of.resize(slots);
  for (const planner::Route& r : d.plan.routes) {
    tables.first_stage.push_back(static_cast<std::uint32_t>(tables.stages.size()));
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      const BlockRange blocks = blocks_of(r, s);
      const auto edge = [&](std::uint32_t boundary) {
        const std::uint32_t e = edge_at(d.edges, r.application, r.module, boundary);
        return e == UINT32_MAX ? e : d.edges[e].number;
      };
      tables.stages.push_back({edge(blocks.first), edge(blocks.end)});
      for (std::uint32_t slot = 0; slot < slots; ++slot) tables.session_of[slot].push_back(core::kNone);
      std::vector<std::uint32_t>& takes_frames = tables.takes_frames[r.application];
      for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
        const std::uint32_t of = session(d, p, r.application, r.module, blocks);
        tables.session_of[d.slots[p]].back() = of;
        if (of != core::kNone && tables.stages.back().in == core::kNone &&
            std::ranges::count(takes_frames, d.slots[p]) == 0)
          takes_frames.push_back(d.slots[p]);
      }
    }
  }
  for (const FeatureEdge& e : d.edges) tables.edges.emplace_back(e.number, e.spec);
}

}  // namespace

core::Policy served_policy(const Config& config) {
  core::Policy out = config.policy;
  if (out.scheduler != nullptr) return out;
  out.goes_on_within_ns = kShortNs;
  if (std::ranges::count(out.given, "queue_ahead") != 0) return out;
  out.queue_ahead = 1;
  out.ahead_within_ns = kShortNs;
  return out;
}

LoopOptions loop_options(const Config& config, const Deployment& d, std::uint32_t slots) {
  LoopOptions out;
  out.limits.partitions = slots;
  out.limits.modules = shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::module)];
  out.limits.applications = out.limits.modules;
  out.limits.streams = config.limits.streams;
  out.limits.coordinated = std::min(config.limits.streams, kMaxCoordinated);
  out.limits.requests = config.limits.requests;
  out.clients = config.limits.clients;
  out.batch_limit_ns = config.limits.batch_timeout_ns;
  // Spinning pays where work is shorter than a wake; for longer work only where a core is to spare for it.
  const bool spins = d.scheduler_alone && (d.tiny_hops || core_count() >= kCoresToSpare);
  out.wait = shm::choose_wait_policy(shm::Role::scheduler, core_count(), spins, d.tiny_hops);
  out.cores = d.scheduler_cores;
  out.ahead = !d.scheduler_alone;
  out.measures_tasks = true;
  return out;
}

namespace {

record::Names names_of(const Config& config, const Deployment& d, std::uint32_t slots) {
  record::Names out;
  for (const ApplicationConfig& app : config.applications) {
    out.applications.push_back(app.application.name);
    for (const auto& m : app.application.modules) out.modules.push_back(app.application.name + "/" + m.name);
  }
  out.partitions.resize(slots);
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) out.partitions[d.slots[p]] = d.partitions[p].partition.name;
  out.preset = config.preset;
  out.settings = config.policy_settings;
  return out;
}

}  // namespace

PlanTables plan_tables(const Config& config, const Deployment& d, const core::Topology& topology, std::uint32_t slots) {
  PlanTables out;
  number_stages(config, d, slots, out);
  out.routes = route_limits(topology);
  out.modules = static_cast<std::uint32_t>(topology.modules.size());
  for (const core::ModuleSpec& m : topology.modules)
    out.first_of.push_back(topology.applications[m.application].modules.front());
  out.sizes = d.sizes;
  out.sizes.resize(out.modules);
  for (const ApplicationConfig& app : config.applications) out.closed.push_back(app.retired ? 1 : 0);
  for (const core::ApplicationSpec& app : topology.applications) out.heirs.push_back(app.heir);
  out.names = names_of(config, d, slots);
  return out;
}

namespace {

bool begun(Metrics& metrics, shm::RecordKind kind, std::uint32_t index, std::string_view name) {
  const auto* const record = metrics.writer().at(kind, index);
  return record != nullptr && record->state == static_cast<std::uint32_t>(shm::RecordState::live) &&
         name == std::string_view(record->label);
}

void begin_modules(const Config& config, Metrics& metrics) {
  std::uint32_t module = 0;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    for (const auto& m : config.applications[a].application.modules) {
      const std::uint32_t index = module++;
      const std::string name = config.applications[a].application.name + "/" + m.name;
      if (config.applications[a].retired || begun(metrics, shm::RecordKind::module, index, name)) continue;
      shm::Record record = metrics.writer().begin(shm::RecordKind::module, index, name);
      record.set(shm::ModuleCounter::application, a);
      record.set(shm::ModuleCounter::queued, 0);
      record.set(shm::ModuleCounter::running, 0);
    }
  }
}

}  // namespace

void begin_records(const Config& config, const Deployment& d, Metrics& metrics) {
  using shm::PartitionCounter;
  using shm::RecordKind;
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    const PartitionConfig& partition = d.partitions[p];
    if (begun(metrics, RecordKind::partition, d.slots[p], partition.partition.name)) continue;
    shm::Record record = metrics.writer().begin(RecordKind::partition, d.slots[p], partition.partition.name);
    record.set(PartitionCounter::kind, static_cast<std::uint64_t>(partition.partition.kind));
    record.set(PartitionCounter::cores, partition.cores.size());
    record.set(PartitionCounter::queued, 0);
    record.set(PartitionCounter::running_since_ns, 0);
  }
  begin_modules(config, metrics);
  for (const FeatureEdge& edge : d.edges) {
    if (begun(metrics, RecordKind::edge, edge.number, name_of(edge, config))) continue;
    shm::Record record = metrics.writer().begin(RecordKind::edge, edge.number, name_of(edge, config));
    for (const auto counter : {shm::EdgeCounter::transfers, shm::EdgeCounter::bytes_in_place,
                               shm::EdgeCounter::bytes_copied, shm::EdgeCounter::slots_in_use})
      record.set(counter, 0);
    record.set(shm::EdgeCounter::slots, edge.spec.rows);
  }
}

}  // namespace leat::daemon
