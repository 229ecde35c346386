#include "engine/daemon/deployment/loop_options.h"

#include <algorithm>

#include "tools/base/cores/core_count.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kCoresToSpare = 4;
// A hand-over costs some tens of microseconds; in work longer than this nobody sees them.
constexpr std::int64_t kShortNs = 4'000'000;

void number_stages(const Deployment& d, LoopOptions& options) {
  options.session_of.resize(d.partitions.size());
  for (const planner::Route& r : d.plan.routes) {
    options.first_stage.push_back(static_cast<std::uint32_t>(options.stages.size()));
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      const BlockRange blocks = blocks_of(r, s);
      options.stages.push_back({edge_at(d.edges, r.application, r.module, blocks.first),
                                edge_at(d.edges, r.application, r.module, blocks.end)});
      for (std::uint32_t p = 0; p < options.session_of.size(); ++p)
        options.session_of[p].push_back(session(d, p, r.application, r.module, blocks));
    }
  }
  for (const FeatureEdge& e : d.edges) options.edges.push_back(e.spec);
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

LoopOptions loop_options(const Config& config, const Deployment& d) {
  LoopOptions out;
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
  number_stages(d, out);
  out.first_module = d.first_module;
  out.sizes = d.sizes;
  return out;
}

void begin_records(const Config& config, const Deployment& d, Metrics& metrics) {
  using shm::PartitionCounter;
  using shm::RecordKind;
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    const PartitionConfig& partition = d.partitions[p];
    shm::Record record = metrics.writer().begin(RecordKind::partition, p, partition.partition.name);
    record.set(PartitionCounter::kind, static_cast<std::uint64_t>(partition.partition.kind));
    record.set(PartitionCounter::cores, partition.cores.size());
    record.set(PartitionCounter::queued, 0);
    record.set(PartitionCounter::running_since_ns, 0);
  }
  std::uint32_t module = 0;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    for (const auto& m : config.applications[a].application.modules) {
      shm::Record record =
          metrics.writer().begin(RecordKind::module, module++, config.applications[a].application.name + "/" + m.name);
      record.set(shm::ModuleCounter::application, a);
      record.set(shm::ModuleCounter::queued, 0);
      record.set(shm::ModuleCounter::running, 0);
    }
  }
  for (std::uint32_t e = 0; e < d.edges.size(); ++e) {
    shm::Record record = metrics.writer().begin(RecordKind::edge, e, name_of(d.edges[e], config));
    for (const auto counter : {shm::EdgeCounter::transfers, shm::EdgeCounter::bytes_in_place,
                               shm::EdgeCounter::bytes_copied, shm::EdgeCounter::slots_in_use})
      record.set(counter, 0);
    record.set(shm::EdgeCounter::slots, d.edges[e].spec.rows);
  }
}

}  // namespace leat::daemon
