#include "planner/build/routes.h"

#include <algorithm>
#include <map>

#include "planner/pooled/packing.h"
#include "planner/profile_table.h"

namespace leat::planner {
namespace {

// One share of one device, wanted by one stage.
struct Item {
  std::size_t route, stage;
  std::uint32_t share;
};

Partition cut(const HostPartition& device, std::uint32_t share, std::uint32_t number) {
  Partition p = device.partition;
  if (share <= 1) return p;
  p.name += "/" + std::to_string(number) + "of" + std::to_string(share);
  p.kind = row_of(p.kind).cut_into.value_or(p.kind);
  p.share = share;
  p.size /= share;
  p.price /= share;
  p.watts /= share;
  p.memory_bytes /= share;
  if (const char* const word = row_of(p.kind).share; word != nullptr)
    p.selector += (p.selector.empty() ? "" : " ") + std::string(word) + " " + std::to_string(100 / share) + "%";
  return p;
}

Stage stage_of(const Profile& profile, const GpuType& type, const PooledPipeline& pipe, const PooledStage& s) {
  const ProfileTable table(profile);
  Stage out;
  out.first_block = s.first_block;
  out.end_block = s.end_block;
  if (s.end_block < profile.blocks) out.transfer_bytes = profile.boundary_bytes[s.end_block - 1];
  const std::uint32_t share = type.share_of(s.share);
  for (std::uint32_t b = 1; b <= pipe.batch; ++b) {
    const std::int64_t p50 = table.p50_ns(type.name, share, b, s.first_block, s.end_block);
    out.latency_by_batch.push_back({p50, std::max(p50, table.p99_ns(type.name, share, b, s.first_block, s.end_block)),
                                    table.samples(type.name, share, b, s.first_block, s.end_block)});
  }
  return out;
}

// What a plan says of its links: one figure, so the slowest that its features take.
double slowest_used(const Host& host, const PooledProblem& problem, const PooledSolution& solution) {
  if (problem.pair_gbps.empty()) return host.handover_gbps;
  double min = 0;
  for (const PooledDnnPlan& dnn : solution.dnns) {
    for (const PooledPipeline& pipe : dnn.pipelines) {
      for (std::size_t s = 0; s + 1 < pipe.stages.size(); ++s) {
        const double gbps = problem.pair_gbps[pipe.stages[s].type * problem.types.size() + pipe.stages[s + 1].type];
        if (gbps > 0 && (min == 0 || gbps < min)) min = gbps;
      }
    }
  }
  return min;
}

}  // namespace

PlanFile routes_of(const std::vector<Application>& applications, const Host& host, const HostTypes& types,
                   const PooledProblem& problem, const PooledSolution& solution) {
  PlanFile file;
  file.applications = applications;
  Plan& plan = file.plan;
  std::vector<std::vector<Item>> items(types.types.size());
  for (std::uint32_t a = 0, d = 0; a < applications.size(); ++a) {
    for (std::uint32_t m = 0; m < applications[a].modules.size(); ++m, ++d) {
      for (const PooledPipeline& pipe : solution.dnns[d].pipelines) {
        Route r{a, m, pipe.batch, pipe.rps, {}};
        for (std::size_t s = 0; s < pipe.stages.size(); ++s) {
          const PooledStage& stage = pipe.stages[s];
          r.stages.push_back(stage_of(*problem.dnns[d].profile, problem.types[stage.type], pipe, stage));
          items[stage.type].insert(items[stage.type].end(), stage.vgpus, Item{plan.routes.size(), s, stage.share});
        }
        plan.routes.push_back(std::move(r));
      }
    }
  }
  for (std::size_t t = 0; t < items.size(); ++t) {
    std::vector<std::uint32_t> shares;
    for (const Item& i : items[t]) shares.push_back(i.share);
    const auto devices = pack_shares(shares, static_cast<std::uint32_t>(types.members[t].size()));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      const HostPartition& device = host.partitions[types.members[t][devices[k]]];
      const std::uint32_t number = numbers[{devices[k], items[t][k].share}]++;
      plan.routes[items[t][k].route].stages[items[t][k].stage].pool.push_back(
          static_cast<std::uint32_t>(plan.partitions.size()));
      plan.partitions.push_back(cut(device, items[t][k].share, number));
    }
  }
  if (const double gbps = slowest_used(host, problem, solution); gbps > 0) {
    std::uint32_t hosts = 1;
    for (const Partition& p : plan.partitions) hosts = std::max(hosts, p.host + 1);
    plan.hosts.assign(hosts, {gbps, gbps});
  }
  plan.certificate = solution.certificate;
  return file;
}

}  // namespace leat::planner
