#include "engine/daemon/deployment/loop_options.h"

namespace leat::daemon {

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

void begin_records(const Config& config, const Deployment& d, CountersBoard& board) {
  using shm::PartitionCounter;
  using shm::RecordKind;
  for (std::uint32_t p = 0; p < d.partitions.size(); ++p) {
    const PartitionConfig& partition = d.partitions[p];
    shm::Record record = board.writer().begin(RecordKind::partition, p, partition.partition.name);
    record.set(PartitionCounter::kind, static_cast<std::uint64_t>(partition.partition.kind));
    record.set(PartitionCounter::cores, partition.cores.size());
    record.set(PartitionCounter::queued, 0);
  }
  std::uint32_t module = 0;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    for (const auto& m : config.applications[a].application.modules) {
      shm::Record record =
          board.writer().begin(RecordKind::module, module++, config.applications[a].application.name + "/" + m.name);
      record.set(shm::ModuleCounter::application, a);
      record.set(shm::ModuleCounter::queued, 0);
      record.set(shm::ModuleCounter::running, 0);
    }
  }
  for (std::uint32_t e = 0; e < d.edges.size(); ++e) {
    shm::Record record = board.writer().begin(RecordKind::edge, e, name_of(d.edges[e], config));
    for (const auto counter : {shm::EdgeCounter::transfers, shm::EdgeCounter::bytes_in_place,
                               shm::EdgeCounter::bytes_copied, shm::EdgeCounter::slots_in_use})
      record.set(counter, 0);
  }
}

}  // namespace leat::daemon
