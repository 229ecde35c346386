#include "planner/shared/sharing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

#include "planner/build/latency_budget.h"
#include "planner/pooled/lp.h"
#include "planner/profile_table.h"
#include "planner/shared/shared_problem.h"

namespace leat::planner {
namespace {

class Sharer {
 public:
  Sharer(const std::vector<Application>& applications, const std::vector<double>& weights,
         const std::vector<std::vector<const Profile*>>& profiles, const Host& host, const HostTypes& types)
      : applications_(applications), profiles_(profiles), host_(host), types_(types) {
    for (const auto& members : types.members) problem_.count.push_back(static_cast<double>(members.size()));
    for (std::size_t a = 0; a < applications.size(); ++a) {
      SharedApplication& app = problem_.applications.emplace_back();
      app.slo_us = static_cast<double>(applications[a].slo_ns) / 1000;
      app.weight = weights[a];
      for (std::size_t m = 0; m < applications[a].modules.size(); ++m)
        app.modules.push_back(module(applications[a].modules[m], *profiles[a][m]));
    }
  }

  Sharing choose(const Plan* dedicated) {
    const auto begun = std::chrono::steady_clock::now();
    Sharing out;
    if (dedicated != nullptr) out.dedicated_rate = rate_of(*dedicated);
    const SharedSolution shared = solve_shared(problem_);
    out.shared_rate = shared.z;
    const double own = dedicated != nullptr ? dedicated->certificate.objective : 0;
    const double max = std::max({shared.feasible ? shared.z : 0, out.dedicated_rate, own});
    if (max > 0) out.unplanned = unplanned(max, std::max(max, shared.bound));
    if (!shared.feasible) return out;
    out.better = shared.z > out.dedicated_rate * (1 + 1e-6);
    out.plan = plan_of(shared);
    Certificate& c = out.plan.certificate;
    c.objective = shared.z;
    c.upper_bound = shared.bound;
    c.gap = (shared.bound - shared.z) / shared.bound;
    c.method =
        "modules share the partitions of a class in time; waits modelled, checked against one block range a partition";
    char text[96];
    std::snprintf(text, sizeof text, "partitions %.0f %% busy; beyond that requests wait too long",
                  100 * shared.utilisation);
    c.binding = text;
    c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return out;
  }

 private:
  SharedModule module(const Module& m, const Profile& profile) const {
    const ProfileTable table(profile);
    SharedModule out;
    out.items = m.items_per_request;
    std::int64_t bytes = 0;
    for (const std::int64_t b : profile.block_memory_bytes) bytes += b;
    for (const GpuType& t : types_.types) {
      const std::uint32_t share = t.share_of(1);
      std::vector<double>&run = out.run_us.emplace_back(), &slow = out.slow_us.emplace_back();
      if (t.memory_bytes > 0 && bytes > t.memory_bytes) continue;
      for (std::uint32_t b = 1; b <= table.largest_batch(t.name, share); ++b) {
        const std::int64_t p50 = table.p50_ns(t.name, share, b, 0, profile.blocks);
        run.push_back(static_cast<double>(p50) / 1000);
        slow.push_back(static_cast<double>(std::max(p50, table.p99_ns(t.name, share, b, 0, profile.blocks))) / 1000);
      }
    }
    return out;
  }

  // What the dedicated plan promises by this model: its pools, as they are.
  double rate_of(const Plan& plan) const {
    std::map<std::vector<std::uint32_t>, std::uint32_t> pool_of;
    std::vector<double> sizes;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> total;
    for (const Route& r : plan.routes) total[{r.application, r.module}] += r.rate_rps;
    std::vector<PooledUse> uses;
    for (std::uint32_t i = 0; i < plan.routes.size(); ++i) {
      const Route& r = plan.routes[i];
      const double all = total[{r.application, r.module}];
      for (const Stage& s : r.stages) {
        const auto [at, fresh] = pool_of.emplace(s.pool, static_cast<std::uint32_t>(sizes.size()));
        if (fresh) sizes.push_back(static_cast<double>(s.pool.size()));
        PooledUse use{.application = r.application, .module = r.module, .route = i};
        use.share = all > 0 ? r.rate_rps / all : 1;
        use.items = applications_[r.application].modules[r.module].items_per_request;
        use.pool = at->second;
        use.batch = r.batch;
        for (const Latency& l : s.latency_by_batch) {
          use.run_us.push_back(static_cast<double>(l.p50_ns) / 1000);
          use.slow_us.push_back(static_cast<double>(l.p99_ns) / 1000);
        }
        if (!plan.hosts.empty() && plan.hosts[0].up_gbps > 0)
          use.transfer_us = static_cast<double>(s.transfer_bytes) * 8 * r.batch / (plan.hosts[0].up_gbps * 1000);
        uses.push_back(std::move(use));
      }
    }
    return promised(problem_, applications_, sizes, uses);
  }

  struct Way {
    std::uint32_t application = 0, module = 0, of_class = 0, batch = 1;
    double rate = 0;
  };

  // Every path of every application within its SLO at the batches of these ways, p99?
  bool in_time(const std::vector<Way>& ways) const {
    for (std::uint32_t a = 0; a < applications_.size(); ++a) {
      std::vector<double> need(applications_[a].modules.size(), 0);
      for (const Way& w : ways)
        if (w.application == a)
          need[w.module] =
              std::max(need[w.module], problem_.applications[a].modules[w.module].slow_us[w.of_class][w.batch - 1]);
      if (longest_path(applications_[a], need) > problem_.applications[a].slo_us * (1 - 1e-9)) return false;
    }
    return true;
  }

  Plan plan_of(const SharedSolution& shared) const {
    std::vector<Way> ways;
    for (const SharedUse& u : shared.uses)
      ways.push_back({u.application, u.module, u.of_class, u.batch,
                      u.rate_rps * applications_[u.application].modules[u.module].items_per_request});
    // Where else a module could run in time it may, as without a plan; the scheduler decides.
    for (std::uint32_t a = 0; a < applications_.size(); ++a)
      for (std::uint32_t m = 0; m < applications_[a].modules.size(); ++m)
        for (std::uint32_t c = 0; c < types_.types.size(); ++c) {
          if (problem_.applications[a].modules[m].run_us[c].empty() || known(ways, a, m, c)) continue;
          ways.push_back({a, m, c, 1, 0});
          if (!in_time(ways)) ways.pop_back();
        }
    // The planned batch is what the planned rate needs; bursts may take more, as far as the SLO permits. Also batches
    // that are dearer by the profile: the scheduler weighs that, and a profile measured beside other work may err.
    for (const double factor : {8.0, 4.0, 3.0, 2.0, 1.5, 1.25}) {
      std::vector<Way> larger = ways;
      for (Way& w : larger) {
        const auto max =
            static_cast<double>(problem_.applications[w.application].modules[w.module].run_us[w.of_class].size());
        w.batch = static_cast<std::uint32_t>(std::min(max, std::ceil(w.batch * factor)));
      }
      if (!in_time(larger)) continue;
      ways = std::move(larger);
      break;
    }
    std::sort(ways.begin(), ways.end(), [](const Way& x, const Way& y) {
      return std::tie(x.application, x.module, x.of_class) < std::tie(y.application, y.module, y.of_class);
    });
    return routes_of_ways(ways);
  }

  // Largest batches; the rates stand where together they leave the busiest class the least work.
  Plan unplanned(double z, double bound) const {
    std::vector<Way> ways;
    std::vector<double> weights;
    std::vector<LpColumn> columns;
    for (std::uint32_t a = 0; a < applications_.size(); ++a) {
      for (std::uint32_t m = 0; m < applications_[a].modules.size(); ++m) {
        const SharedModule& module = problem_.applications[a].modules[m];
        for (std::uint32_t c = 0; c < types_.types.size(); ++c) {
          const std::vector<double>& run = module.run_us[c];
          if (run.empty()) continue;
          ways.push_back({a, m, c, static_cast<std::uint32_t>(run.size()), 0});
          LpColumn& column = columns.emplace_back(LpColumn{static_cast<std::uint32_t>(weights.size()), c, {}});
          column.gpus_per_rps.assign(types_.types.size(), 0);
          column.gpus_per_rps[c] = run.back() / 1e6 / static_cast<double>(run.size());
        }
        weights.push_back(problem_.applications[a].weight * module.items);
      }
    }
    const PooledLp min(problem_.count, weights, std::move(columns));
    z = std::min(z, min.bound());  // no more than there is time for
    std::size_t way = 0;
    for (std::size_t d = 0; d < weights.size(); ++d) {
      double all = 0;
      for (const LpColumn& column : min.columns()[d]) all += column.rps;
      for (const LpColumn& column : min.columns()[d]) ways[way++].rate = z * weights[d] * column.rps / all;
    }
    Plan plan = routes_of_ways(ways);
    plan.certificate = {.objective = z,
                        .upper_bound = bound,
                        .gap = 1 - z / bound,
                        .binding = "partitions, shared in time",
                        .method = "every module on every partition, as without a plan",
                        .seconds = 0};
    return plan;
  }

  static bool known(const std::vector<Way>& ways, std::uint32_t a, std::uint32_t m, std::uint32_t c) {
    return std::any_of(ways.begin(), ways.end(),
                       [&](const Way& w) { return w.application == a && w.module == m && w.of_class == c; });
  }

  Plan routes_of_ways(const std::vector<Way>& ways) const {
    Plan plan;
    std::vector<std::vector<std::uint32_t>> pool(types_.types.size());
    for (std::uint32_t c = 0; c < types_.types.size(); ++c) {
      const bool used = std::any_of(ways.begin(), ways.end(), [&](const Way& w) { return w.of_class == c; });
      for (const std::uint32_t member : used ? types_.members[c] : std::vector<std::uint32_t>{}) {
        pool[c].push_back(static_cast<std::uint32_t>(plan.partitions.size()));
        plan.partitions.push_back(host_.partitions[member].partition);
      }
    }
    for (const Way& w : ways) {
      const Profile& profile = *profiles_[w.application][w.module];
      const ProfileTable table(profile);
      const GpuType& type = types_.types[w.of_class];
      const std::uint32_t share = type.share_of(1);
      Stage stage{.first_block = 0, .end_block = profile.blocks, .pool = pool[w.of_class]};
      for (std::uint32_t b = 1; b <= w.batch; ++b) {
        const std::int64_t p50 = table.p50_ns(type.name, share, b, 0, profile.blocks);
        stage.latency_by_batch.push_back({p50, std::max(p50, table.p99_ns(type.name, share, b, 0, profile.blocks)),
                                          table.samples(type.name, share, b, 0, profile.blocks)});
      }
      plan.routes.push_back({w.application, w.module, w.batch, w.rate, {std::move(stage)}});
    }
    if (host_.handover_gbps > 0) {
      std::uint32_t hosts = 1;
      for (const Partition& p : plan.partitions) hosts = std::max(hosts, p.host + 1);
      plan.hosts.assign(hosts, {host_.handover_gbps, host_.handover_gbps});
    }
    return plan;
  }

  const std::vector<Application>& applications_;
  const std::vector<std::vector<const Profile*>>& profiles_;
  const Host& host_;
  const HostTypes& types_;
  SharedProblem problem_;
};

}  // namespace

Sharing consider_sharing(const std::vector<Application>& applications, const std::vector<double>& weights,
                         const std::vector<std::vector<const Profile*>>& profiles, const Host& host,
                         const HostTypes& types, const Plan* dedicated) {
  return Sharer(applications, weights, profiles, host, types).choose(dedicated);
}

}  // namespace leat::planner
