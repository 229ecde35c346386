#include "bench/papers/ppipe_topology.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/sim/pool_links.h"
#include "planner/profile_table.h"

namespace leat::bench {
namespace {

// One physical GPU that a plan uses, and what it puts on its server's links.
struct UsedGpu {
  double up = 0, down = 0;        // share of the link's time
  double up_ms = 0, down_ms = 0;  // the sum of (share x time of one transfer): what one finds in its way is half of it
  double weight = 0;              // share of a DNN's requests that pass here / slack in ms
  std::uint32_t server = 0;
};

class Builder {
 public:
  Builder(const planner::Scenario& scenario, const PlanLayout& layout) : scenario_(scenario), layout_(layout) {
    for (const planner::PooledDnn& dnn : scenario.problem.dnns) tables_.emplace_back(*dnn.profile);
    gpus_.resize(scenario.problem.types.size());
  }

  core::Topology build() {
    const auto& plans = scenario_.plans.at(layout_.plan);
    for (std::size_t d = 0; d < plans.size(); ++d) add_dnn(d, plans[d]);
    if (!layout_.authors_links) {
      place_on_servers();
      topology_.hosts.assign(servers_, link());
      for (std::size_t p = 0; p < topology_.partitions.size(); ++p)
        topology_.partitions[p].host = gpus_[gpu_of_[p].first][gpu_of_[p].second].server;
    }
    for (core::RouteSpec& route : topology_.routes) {
      for (core::StageSpec& stage : route.stages) interleave(stage.pool);
    }
    return std::move(topology_);
  }

 private:
  [[nodiscard]] core::LinkSpec link() const {
    const double speed = scenario_.problem.bandwidth_gbps / 8;
    return {.up_bytes_per_ns = speed, .down_bytes_per_ns = speed};
  }

  void add_dnn(std::size_t d, const planner::PooledDnnPlan& plan) {
    core::ApplicationSpec app{.slo_ns = static_cast<core::TimeNs>(scenario_.slo_us[d] * 1000),
                              .rate_rps = plan.rps,
                              .modules = {static_cast<core::ModuleId>(d)}};
    topology_.applications.push_back(app);
    topology_.modules.push_back(
        {.application = static_cast<std::uint32_t>(d), .before = {}, .after = {}, .routes = {}});
    // Pools: (stage index, type) -> its shares, largest first, packed first-fit on whole GPUs; different pools share
    // none.
    std::vector<std::vector<std::vector<core::PartitionId>>> pools(plan.pipelines.size());
    for (std::size_t i = 0; i < plan.pipelines.size(); ++i) pools[i].resize(plan.pipelines[i].stages.size());
    for (std::uint32_t s = 0; s < planner::kMaxStages; ++s) {
      for (std::uint32_t type = 0; type < gpus_.size(); ++type) {
        std::vector<std::pair<std::uint32_t, std::size_t>> by_share;
        for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
          if (s < plan.pipelines[i].stages.size() && plan.pipelines[i].stages[s].type == type)
            by_share.push_back({plan.pipelines[i].stages[s].share, i});
        }
        std::sort(by_share.begin(), by_share.end());
        std::vector<std::pair<double, std::uint32_t>> room;  // free fraction, GPU
        for (const auto& [share, i] : by_share) {
          for (std::uint64_t n = 0; n < plan.pipelines[i].stages[s].vgpus; ++n)
            pools[i][s].push_back(add_partition(d, plan.pipelines[i], s, type, share, room));
        }
      }
    }
    for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
      if (layout_.authors_links) add_authors_links(plan.pipelines[i], pools[i]);
      add_routes(d, plan.pipelines[i], pools[i]);
    }
  }

  void add_authors_links(const planner::PooledPipeline& pipe,
                         const std::vector<std::vector<core::PartitionId>>& pools) {
    std::vector<sim::PoolStage> stages;
    for (std::size_t s = 0; s < pools.size(); ++s) {
      const planner::PooledStage& stage = pipe.stages[s];
      stages.push_back(
          {.pool = pools[s],
           .gpus_per_server = static_cast<std::uint32_t>(scenario_.problem.types[stage.type].gpus_per_server),
           .shares = stage.share});
    }
    sim::add_pool_links(topology_, stages, link());
  }

  core::PartitionId add_partition(std::size_t d, const planner::PooledPipeline& pipe, std::uint32_t s,
                                  std::uint32_t type, std::uint32_t share,
                                  std::vector<std::pair<double, std::uint32_t>>& room) {
    auto it = std::find_if(room.begin(), room.end(), [&](const auto& r) { return r.first >= 1.0 / share - 1e-9; });
    if (it == room.end()) {
      gpus_[type].push_back({});
      room.push_back({1.0, static_cast<std::uint32_t>(gpus_[type].size() - 1)});
      it = room.end() - 1;
    }
    it->first -= 1.0 / share;
    UsedGpu& gpu = gpus_[type][it->second];
    const auto& boundary = scenario_.problem.dnns[d].profile->boundary_bytes;
    double service_us = 0;
    for (const planner::PooledStage& stage : pipe.stages) service_us += stage.latency_us + stage.transfer_us;
    const double rps = pipe.rps / static_cast<double>(pipe.stages[s].vgpus);
    const auto load = [&](std::uint32_t sender, double& busy, double& ms) {
      const double one_ms = static_cast<double>(boundary[pipe.stages[sender].end_block - 1]) * 8 /
                            (scenario_.problem.bandwidth_gbps * 1e6);
      busy += rps * one_ms / 1000;
      ms += rps * one_ms / 1000 * one_ms;
    };
    if (s + 1 < pipe.stages.size()) load(s, gpu.up, gpu.up_ms);
    if (s > 0) load(s - 1, gpu.down, gpu.down_ms);
    gpu.weight +=
        rps / scenario_.plans.at(layout_.plan)[d].rps / std::max(1.0, (scenario_.slo_us[d] - service_us) / 1000);
    topology_.partitions.push_back({.size = 1.0 / share, .price = 1, .device = it->second, .host = 0});
    gpu_of_.push_back({type, it->second});
    return static_cast<core::PartitionId>(topology_.partitions.size() - 1);
  }

  void add_routes(std::size_t d, const planner::PooledPipeline& pipe,
                  const std::vector<std::vector<core::PartitionId>>& pools) {
    core::RouteSpec route{
        .module = static_cast<core::ModuleId>(d), .batch = pipe.batch, .rate_rps = pipe.rps, .stages = {}};
    const auto& boundary = scenario_.problem.dnns[d].profile->boundary_bytes;
    for (std::size_t s = 0; s < pipe.stages.size(); ++s) {
      const planner::PooledStage& stage = pipe.stages[s];
      const std::string& type = scenario_.problem.types[stage.type].name;
      core::StageSpec spec{.pool = pools[s],
                           .latency = {},
                           .transfer_bytes = s + 1 < pipe.stages.size() ? boundary[stage.end_block - 1] : 0};
      for (std::uint32_t b = 1; b <= tables_[d].largest_batch(type, stage.share); ++b) {
        spec.latency.p50_ns.push_back(tables_[d].p50_ns(type, stage.share, b, stage.first_block, stage.end_block));
      }
      spec.latency.p99_ns = spec.latency.p50_ns;
      route.stages.push_back(std::move(spec));
    }
    std::size_t chains = 1;
    if (layout_.chains && pools.size() > 1) {
      for (const auto& pool : pools) chains = std::max(chains, pool.size());
    }
    for (std::size_t c = 0; c < chains; ++c) {
      core::RouteSpec chain = route;
      if (chains > 1) {
        chain.rate_rps /= static_cast<double>(chains);
        for (std::size_t s = 0; s < pools.size(); ++s) chain.stages[s].pool = {pools[s][c % pools[s].size()]};
      }
      topology_.modules[d].routes.push_back(static_cast<core::RouteId>(topology_.routes.size()));
      topology_.routes.push_back(std::move(chain));
    }
  }

  // Neighbours in a pool stand on different servers: who takes partitions in turn does not fill one link after the
  // other.
  void interleave(std::vector<core::PartitionId>& pool) const {
    std::map<std::uint32_t, std::size_t> on_host;
    std::vector<std::pair<std::size_t, core::PartitionId>> order;
    for (core::PartitionId p : pool) order.push_back({on_host[topology_.partitions[p].host]++, p});
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = order[i].second;
  }

  void place_on_servers() {
    for (std::size_t type = 0; type < gpus_.size(); ++type) {
      const planner::GpuType& t = scenario_.problem.types[type];
      const auto per_server = static_cast<std::uint32_t>(t.gpus_per_server);
      const std::uint32_t servers = (t.count + per_server - 1) / per_server;
      std::vector<UsedGpu>& gpus = gpus_[type];
      if (layout_.spread) {
        spread(gpus, servers, per_server, t.count);
      } else {
        for (std::size_t g = 0; g < gpus.size(); ++g) gpus[g].server = static_cast<std::uint32_t>(g) / per_server;
      }
      for (UsedGpu& g : gpus) g.server += servers_;
      servers_ += servers;
    }
  }

  // Expected wait for a server's two links, in slack: a transfer finds, by chance, half of another GPU's in its way,
  // and a busy link's queue. What a GPU sends follows on itself and is never in its own way; what it receives may be.
  static double waiting(const std::vector<UsedGpu>& gpus, const std::vector<std::size_t>& here) {
    double up = 0, down = 0, up_ms = 0, down_ms = 0, sum = 0;
    for (std::size_t g : here) {
      up += gpus[g].up;
      down += gpus[g].down;
      up_ms += gpus[g].up_ms;
      down_ms += gpus[g].down_ms;
    }
    for (std::size_t g : here) {
      if (gpus[g].up > 0) sum += gpus[g].weight * (up_ms - gpus[g].up_ms) / std::max(0.02, 1 - up);
      if (gpus[g].down > 0) sum += gpus[g].weight * down_ms / std::max(0.02, 1 - down);
    }
    return sum / 2;
  }

  // Deals the GPUs out, then exchanges any two (or moves one into an empty place) while features wait less by it.
  static void spread(std::vector<UsedGpu>& gpus, std::uint32_t servers, std::uint32_t per_server, std::uint32_t count) {
    const std::size_t used = gpus.size();
    gpus.resize(count);  // empty places are GPUs that send nothing
    std::vector<std::vector<std::size_t>> here(servers);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return gpus[a].weight * (gpus[a].up_ms + gpus[a].down_ms) > gpus[b].weight * (gpus[b].up_ms + gpus[b].down_ms);
    });
    for (std::size_t g : order) {
      std::uint32_t best = core::kNone;
      double min = 0;
      for (std::uint32_t i = 0; i < servers; ++i) {
        if (here[i].size() == std::min(per_server, count - i * per_server)) continue;
        const double before = waiting(gpus, here[i]);
        here[i].push_back(g);
        const double more = waiting(gpus, here[i]) - before;
        here[i].pop_back();
        if (best == core::kNone || more < min) {
          best = i;
          min = more;
        }
      }
      here[best].push_back(g);
    }
    for (bool better = true; better;) {
      better = false;
      for (std::uint32_t a = 0; a < servers; ++a) {
        for (std::uint32_t b = a + 1; b < servers; ++b) {
          for (std::size_t& x : here[a]) {
            for (std::size_t& y : here[b]) {
              const double before = waiting(gpus, here[a]) + waiting(gpus, here[b]);
              std::swap(x, y);
              if (waiting(gpus, here[a]) + waiting(gpus, here[b]) < before * (1 - 1e-9)) {
                better = true;
              } else {
                std::swap(x, y);
              }
            }
          }
        }
      }
    }
    for (std::uint32_t i = 0; i < servers; ++i) {
      for (std::size_t g : here[i]) gpus[g].server = i;
    }
    gpus.resize(used);
  }

  const planner::Scenario& scenario_;
  const PlanLayout& layout_;
  std::vector<planner::ProfileTable> tables_;
  std::vector<std::vector<UsedGpu>> gpus_;                     // by type
  std::vector<std::pair<std::size_t, std::uint32_t>> gpu_of_;  // by partition: type, GPU
  std::uint32_t servers_ = 0;
  core::Topology topology_;
};

}  // namespace

core::Topology ppipe_topology(const planner::Scenario& scenario, const PlanLayout& layout) {
  return Builder(scenario, layout).build();
}

}  // namespace leat::bench
