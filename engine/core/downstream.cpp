// Tables and what lies after a module: durations by batch, batch caps, shares of the SLO, and L_sub.
#include <algorithm>
#include <numeric>

#include "engine/core/state.h"

namespace leat::core {

// Durations of whole routes by batch, lanes and servers. Allocates; called by the constructor only.
void Scheduler::State::build_tables() {
  for (const RouteSpec& route : topology.routes) {
    for (const bool safe : {false, true}) {
      (safe ? route_safe : route_run).push_back(static_cast<std::uint32_t>(table.size()));
      for (std::uint32_t b = 0; b <= route.batch; ++b) {
        const std::uint32_t items = std::max(b, 1u);
        TimeNs sum = 0;
        for (std::size_t k = 0; k < route.stages.size(); ++k) {
          const StageSpec& stage = route.stages[k];
          sum += (safe ? stage.latency.p99_ns : stage.latency.p50_ns)[items - 1];
          if (k + 1 < route.stages.size()) {
            sum += link_ns(stage.transfer_bytes * items, stage.pool.front(), route.stages[k + 1].pool.front());
          }
        }
        table.push_back(sum);
      }
    }
  }
  for (ModuleId id = 0; id < modules.size(); ++id) {
    std::vector<Server> list;
    for (RouteId route : topology.modules[id].routes) {
      const RouteSpec& spec = topology.routes[route];
      for (PartitionId p : spec.stages.front().pool) {
        Server s{.partition = p, .route = route, .cap = spec.batch};
        s.run_ns = table.data() + route_run[route];
        s.safe_ns = table.data() + route_safe[route];
        // Throughput over price, scaled so that equal configurations compare equal.
        s.ratio = static_cast<std::int64_t>(static_cast<double>(spec.batch) * 1e15 / static_cast<double>(s.run_ns[spec.batch]) /
                                            std::max(1e-9, topology.partitions[p].price));
        list.push_back(s);
      }
    }
    const bool fitting = policy.fit && policy.binding == Binding::late && policy.place != Place::reservation;
    const auto before = [&](const Server& a, const Server& b) {
      if (policy.place == Place::elsa) return topology.partitions[a.partition].size < topology.partitions[b.partition].size;
      if (fitting) return a.run_ns[1] > b.run_ns[1];
      if (policy.place == Place::tc || policy.place == Place::rr) return a.ratio > b.ratio;
      return false;
    };
    std::stable_sort(list.begin(), list.end(), before);
    ModuleState& m = modules[id];
    m.first_lane = static_cast<LaneId>(lanes.size());
    m.lanes = policy.binding == Binding::early ? static_cast<std::uint32_t>(list.size()) : 1;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i == 0 || policy.binding == Binding::early) {
        Lane lane;
        lane.module = id;
        lane.first_server = static_cast<ServerId>(servers.size());
        lanes.push_back(lane);
      }
      list[i].lane = static_cast<LaneId>(lanes.size() - 1);
      ++lanes.back().servers;
      lanes.back().mixed = fitting && lanes.back().servers > 1 && (lanes.back().mixed || list[i].run_ns[1] != list[i - 1].run_ns[1]);
      partitions[list[i].partition].servers.push_back(static_cast<ServerId>(servers.size()));
      servers.push_back(list[i]);
    }
  }
  for (Lane& lane : lanes) {
    lane.idle_words = static_cast<std::uint32_t>(idle_bits.size());
    idle_bits.resize(idle_bits.size() + (lane.servers + 63) / 64, 0);
  }
}

namespace {

// Sum of what partitions give at batch b each, in items per ns; a partition shared by n modules counts 1/n.
double throughput(const Scheduler::State& s, const ModuleState& m, std::uint32_t b) {
  double sum = 0;
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
    for (ServerId v = s.lanes[l].first_server; v < s.lanes[l].first_server + s.lanes[l].servers; ++v) {
      const Server& server = s.servers[v];
      const std::uint32_t n = std::min(b, s.topology.routes[server.route].batch);
      // The busiest stage bounds a pipelined route; its pool is shared by all servers of the route.
      const RouteSpec& route = s.topology.routes[server.route];
      double slowest = 0;
      for (const StageSpec& stage : route.stages) {
        slowest = std::max(slowest, static_cast<double>(stage.latency.p50_ns[n - 1]) / static_cast<double>(stage.pool.size()));
      }
      sum += n / (slowest * static_cast<double>(route.stages.front().pool.size())) /
             static_cast<double>(s.partitions[server.partition].servers.size());
    }
  }
  return sum;
}

// What the plan allows for a batch of b: the slowest server's time; where each takes only what fits there, the fastest's.
TimeNs planned_run(const Scheduler::State& s, const ModuleState& m, std::uint32_t b) {
  const Lane& lane = s.lanes[m.first_lane];
  if (lane.mixed) {
    const Server& fastest = s.servers[lane.first_server + lane.servers - 1];
    return fastest.run_ns[std::min(b, s.topology.routes[fastest.route].batch)];
  }
  TimeNs worst = 0;
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
    for (ServerId v = s.lanes[l].first_server; v < s.lanes[l].first_server + s.lanes[l].servers; ++v) {
      worst = std::max(worst, s.servers[v].run_ns[std::min(b, s.topology.routes[s.servers[v].route].batch)]);
    }
  }
  return worst;
}

// Whether a partition of this module serves another module too.
bool shares_partitions(const Scheduler::State& s, const ModuleState& m) {
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
    for (ServerId v = s.lanes[l].first_server; v < s.lanes[l].first_server + s.lanes[l].servers; ++v) {
      for (ServerId other : s.partitions[s.servers[v].partition].servers) {
        if (s.lanes[s.servers[other].lane].module != s.lanes[l].module) return true;
      }
    }
  }
  return false;
}

TimeNs servers_of(const Scheduler::State& s, const ModuleState& m) {
  TimeNs n = 0;
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) n += s.lanes[l].servers;
  return n;
}

}  // namespace

// With kappa: the caps that maximise the application's rate X subject to sum of d_k(b_k) <= kappa x SLO over its longest path;
// each module takes the smallest batch that carries X. Modules that share partitions take time from each other with small
// batches, so there each grows as far as the limit allows. Without kappa: the plan's batches. One pass at start.
void Scheduler::State::plan_caps() {
  for (const ApplicationSpec& app : topology.applications) {
    const ModuleId first = app.modules.front();
    std::array<std::uint32_t, kMaxModulesPerApplication> cap{}, best{};
    std::array<TimeNs, kMaxModulesPerApplication> d{};
    std::array<std::uint32_t, kMaxModulesPerApplication> largest{};
    for (ModuleId m : app.modules) {
      for (RouteId r : topology.modules[m].routes) largest[m - first] = std::max(largest[m - first], topology.routes[r].batch);
      best[m - first] = policy.kappa_permille == 0 ? largest[m - first] : 1;
      modules[m].max_items = largest[m - first];
    }
    if (policy.kappa_permille > 0) {
      const TimeNs limit = app.slo_ns / 1000 * policy.kappa_permille;
      const auto run_at = [&](ModuleId m, std::uint32_t n) {
        const TimeNs run = planned_run(*this, modules[m], n);
        return policy.forecast ? run + run / servers_of(*this, modules[m]) : run;  // the second: until a partition is free
      };
      double best_rate = 0;
      std::vector<CapLevel>& levels = applications[modules[first].application].levels;
      // X is bounded by some module at some batch: those are the candidates.
      for (ModuleId candidate : app.modules) {
        for (std::uint32_t b = 1; b <= largest[candidate - first]; ++b) {
          const double rate = throughput(*this, modules[candidate], b) / topology.modules[candidate].items_per_request;
          if (rate <= best_rate && !policy.ramp) continue;
          bool fits = true;
          for (ModuleId m : app.modules) {
            const double need = rate * topology.modules[m].items_per_request * (1 - 1e-12);
            std::uint32_t n = 1;
            while (n <= largest[m - first] && throughput(*this, modules[m], n) < need) ++n;
            fits = fits && n <= largest[m - first];
            if (!fits) break;
            cap[m - first] = n;
            d[m - first] = run_at(m, n);
          }
          const TimeNs latency = fits ? longest_path(topology, app, d) : kNever;
          if (latency > limit) continue;
          if (policy.ramp) {
            CapLevel& level = levels.emplace_back();
            level.cap = cap;
            level.rate = rate;
            level.latency_ns = latency;
            for (ModuleId m : app.modules) level.ns_per_item[m - first] = std::max<std::int64_t>(1, static_cast<std::int64_t>(1 / throughput(*this, modules[m], cap[m - first])));
          }
          if (rate <= best_rate) continue;
          best_rate = rate;
          best = cap;
        }
      }
      for (ModuleId m : app.modules) {
        if (modules[m].lanes != 1 || lanes[modules[m].first_lane].mixed || shares_partitions(*this, modules[m])) levels.clear();
      }
      for (ModuleId m : app.modules) d[m - first] = run_at(m, best[m - first]);
      for (ModuleId m : app.modules) {
        while (best[m - first] < largest[m - first] && shares_partitions(*this, modules[m])) {
          d[m - first] = run_at(m, ++best[m - first]);
          if (longest_path(topology, app, d) <= limit) continue;
          d[m - first] = run_at(m, --best[m - first]);
          break;
        }
      }
    }
    for (ModuleId m : app.modules) {
      for (LaneId l = modules[m].first_lane; l < modules[m].first_lane + modules[m].lanes; ++l) {
        for (ServerId v = lanes[l].first_server; v < lanes[l].first_server + lanes[l].servers; ++v) {
          servers[v].cap = std::min(best[m - first], topology.routes[servers[v].route].batch);
        }
      }
      d[m - first] = planned_run(*this, modules[m], best[m - first]);
    }
    const TimeNs longest_run = std::max<TimeNs>(1, longest_path(topology, app, d));
    for (ModuleId m : app.modules) {  // what the plan leaves of the limit is shared out in proportion
      if (!lanes[modules[m].first_lane].mixed || policy.kappa_permille == 0) continue;
      cap_by_time(m, static_cast<TimeNs>(static_cast<double>(app.slo_ns / 1000 * policy.kappa_permille) * static_cast<double>(d[m - first]) /
                                         static_cast<double>(longest_run)));
    }
    for (ModuleId m : app.modules) {
      ModuleState& state = modules[m];
      std::int64_t sum = 0, count = 0;
      state.least_ns = kNever;
      for (LaneId l = state.first_lane; l < state.first_lane + state.lanes; ++l) {
        for (ServerId v = lanes[l].first_server; v < lanes[l].first_server + lanes[l].servers; ++v) {
          sum += servers[v].run_ns[servers[v].cap];
          ++count;
          state.least_ns = std::min(state.least_ns, servers[v].run_ns[1]);
        }
      }
      state.planned_ns = sum / count;
      state.server_count = count;
      double rate = throughput(*this, state, best[m - first]);
      if (const Lane& lane = lanes[state.first_lane]; lane.mixed) {
        rate = 0;
        for (ServerId v = lane.first_server; v < lane.first_server + lane.servers; ++v) {
          rate += servers[v].cap / static_cast<double>(servers[v].run_ns[servers[v].cap]) / static_cast<double>(partitions[servers[v].partition].servers.size());
        }
      }
      state.ns_per_item = std::max<std::int64_t>(1, static_cast<std::int64_t>(1 / rate));
      state.capacity_mhz = static_cast<std::int64_t>(rate * 1e12);
      const auto up = topology.modules[m].before;
      double parent = 0;
      for (ModuleId before : up) parent = std::max(parent, topology.modules[before].items_per_request);
      const double ratio = up.empty() ? 1 : topology.modules[m].items_per_request / parent;
      if (topology.modules[m].fan_out_cap == 1 && ratio < 1) state.branch_permille = static_cast<std::uint32_t>(ratio * 1000 + 0.5);
    }
    plan_ramp(modules[first].application);
    // Shares of the SLO in proportion to planned durations on the longest path (Clipper++); a plan's own budgets come first.
    std::array<TimeNs, kMaxModulesPerApplication> planned{};
    for (ModuleId m : app.modules) planned[m - first] = modules[m].planned_ns;
    split_slo(app, planned);
    for (ModuleId m : app.modules) {
      if (topology.modules[m].budget_ns > 0) modules[m].share_ns = topology.modules[m].budget_ns;
    }
  }
}

// L_sub of every module, backwards through the DAG (maximum over paths): sums of q and d by Policy::downstream, plus W_k.
void Scheduler::State::update_downstream(std::uint32_t application) noexcept {
  const ApplicationSpec& app = topology.applications[application];
  std::array<TimeNs, kMaxModulesPerApplication> path{};  // of module i: q_i + d_i + what follows
  const ModuleId first = app.modules.front();
  for (std::size_t i = app.modules.size(); i-- > 0;) {
    const ModuleId id = app.modules[i];
    ModuleState& m = modules[id];
    m.after_ns = 0;
    m.after_least_ns = 0;
    for (ModuleId next : topology.modules[id].after) {
      m.after_ns = std::max(m.after_ns, path[next - first]);
      m.after_least_ns = std::max(m.after_least_ns, modules[next].after_least_ns + modules[next].least_ns);
    }
    const bool known = id < estimates.modules.size();
    const TimeNs queue = policy.live_queues ? m.queue_delay.mean() : known ? estimates.modules[id].queue_ns : 0;
    path[id - first] = m.after_ns;
    if (policy.downstream != Downstream::none) path[id - first] += m.planned_ns;
    if (policy.downstream == Downstream::all) {
      path[id - first] += queue + (policy.wait == WaitEstimate::upper ? m.planned_ns : 0);
      if (policy.wait == WaitEstimate::quantile && known) m.after_ns += estimates.modules[id].wait_after_ns;
    }
  }
  if (policy.drop != Drop::dynamic_split) return;
  // PARD-WCL: by recent worst latency, and at least a planned batch: a module without a share would drop everything, and then
  // never be seen to need one.
  std::array<TimeNs, kMaxModulesPerApplication> worst{};
  for (ModuleId id : app.modules) {
    worst[id - first] = std::max(modules[id].planned_ns, id < estimates.modules.size() ? estimates.modules[id].worst_ns : 0);
  }
  split_slo(app, worst);
}

// Shares of the SLO in proportion to `weights` [module within its application] on the longest path.
void Scheduler::State::split_slo(const ApplicationSpec& app, const std::array<TimeNs, kMaxModulesPerApplication>& weights) noexcept {
  const ModuleId first = app.modules.front();
  const TimeNs longest = std::max<TimeNs>(1, longest_path(topology, app, weights));
  for (ModuleId m : app.modules) {
    modules[m].share_ns = static_cast<TimeNs>(static_cast<double>(app.slo_ns) * static_cast<double>(weights[m - first]) / static_cast<double>(longest));
  }
}

}  // namespace leat::core
