#include "planner/shared/sharing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "planner/build/latency_budget.h"
#include "planner/pooled/lp.h"
#include "planner/profile_table.h"
#include "planner/shared/residency.h"
#include "planner/shared/shared_problem.h"

namespace leat::planner {
namespace {

class Sharer {
 public:
  explicit Sharer(const Resources& on)
      : applications_(on.applications), profiles_(on.profiles), host_(on.host), types_(on.types) {
    for (const auto& members : types_.members) problem_.count.push_back(static_cast<double>(members.size()));
    for (std::size_t a = 0; a < applications_.size(); ++a) {
      SharedApplication& app = problem_.applications.emplace_back();
      app.slo_us = static_cast<double>(applications_[a].slo_ns) / 1000;
      app.weight = on.weights[a];
      for (std::size_t m = 0; m < applications_[a].modules.size(); ++m)
        app.modules.push_back(module(applications_[a].modules[m], *profiles_[a][m]));
    }
  }

  Result<Plan> improve(const PlanFile& from, double per_load) const {
    const std::vector<Way> ways = runnable();
    const ResidencyProblem problem = residency_problem(ways);
    const auto held = held_by(from, problem.weight.size());
    if (!held.ok()) return Error{held.error()};
    const Residency better = improve_residency(problem, *held, per_load);
    if (!better.feasible) return Error{"the plan to begin from leaves a module without a partition that runs it"};
    return resident_plan(problem, better, ways, promised_by(resident_ways(problem, better, ways, better.z)));
  }

  Sharing choose(const Plan* dedicated) {
    const auto begun = std::chrono::steady_clock::now();
    Sharing out;
    if (dedicated != nullptr) out.dedicated_rate = rate_of(*dedicated);
    if (!all_fit()) {
      share_resident(out);
      out.better = out.shared_rate > out.dedicated_rate * (1 + 1e-6);
      out.plan.certificate.seconds = seconds_since(begun);
      return out;
    }
    const SharedSolution shared = solve_shared(problem_);
    out.shared_rate = shared.z;
    const double own = dedicated != nullptr ? dedicated->certificate.objective : 0;
    const double max = std::max({shared.feasible ? shared.z : 0, out.dedicated_rate, own});
    out.unplanned = unplanned(max, std::max(max, shared.bound));
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
    c.seconds = seconds_since(begun);
    return out;
  }

 private:
  static double seconds_since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }

  SharedModule module(const Module& m, const Profile& profile) const {
    const ProfileTable table(profile);
    SharedModule out;
    out.items = m.items_per_request;
    const std::int64_t bytes = bytes_of(profile);
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

  static std::int64_t bytes_of(const Profile& profile) {
    return std::accumulate(profile.block_memory_bytes.begin(), profile.block_memory_bytes.end(), std::int64_t{0});
  }

  // Every partition holds all modules that it can run?
  bool all_fit() const {
    for (std::size_t c = 0; c < types_.types.size(); ++c) {
      std::int64_t bytes = 0;
      for (std::size_t a = 0; a < applications_.size(); ++a)
        for (std::size_t m = 0; m < applications_[a].modules.size(); ++m)
          if (!problem_.applications[a].modules[m].run_us[c].empty()) bytes += bytes_of(*profiles_[a][m]);
      if (types_.types[c].memory_bytes > 0 && bytes > types_.types[c].memory_bytes) return false;
    }
    return true;
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
    std::vector<std::uint32_t> members = {};  // of the host's partitions; none: all of the class
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
    widen(ways);
    sort(ways);
    return routes_of_ways(ways);
  }

  // The planned batch is what the planned rate needs; bursts may take more, as far as the SLO permits. Also batches
  // that are dearer by the profile: the scheduler weighs that, and a profile measured beside other work may err.
  void widen(std::vector<Way>& ways) const {
    for (const double factor : {8.0, 4.0, 3.0, 2.0, 1.5, 1.25}) {
      std::vector<Way> larger = ways;
      for (Way& w : larger) w.batch = std::min(most(w), static_cast<std::uint32_t>(std::ceil(w.batch * factor)));
      if (!in_time(larger)) continue;
      ways = std::move(larger);
      return;
    }
  }

  const std::vector<double>& run_us(const Way& w) const {
    return problem_.applications[w.application].modules[w.module].run_us[w.of_class];
  }
  std::uint32_t most(const Way& w) const { return static_cast<std::uint32_t>(run_us(w).size()); }

  // Largest batches; the rates stand where together they leave the busiest class the least work. z = 0: the largest
  // that there is time for, which is a promise about work and none about waits.
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
    z = z > 0 ? std::min(z, min.bound()) : min.bound();  // no more than there is time for
    bound = std::max(z, bound);
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

  // Where memory does not hold all models: sets of them, and pools that differ from module to module.
  void share_resident(Sharing& out) const {
    const std::vector<Way> ways = runnable();
    const ResidencyProblem problem = residency_problem(ways);
    const Residency chosen = choose_residency(problem);
    if (!chosen.feasible) return;
    const double kept = promised_by(resident_ways(problem, chosen, ways, chosen.z));
    Plan plan = resident_plan(problem, chosen, ways, kept);
    out.shared_rate = kept;
    (kept > 0 ? out.plan : out.unplanned) = std::move(plan);
  }

  Plan resident_plan(const ResidencyProblem& problem, const Residency& chosen, const std::vector<Way>& ways,
                     double kept) const {
    const double z = kept > 0 ? std::min(kept, chosen.z) : chosen.z;
    Plan plan = routes_of_ways(resident_ways(problem, chosen, ways, z));
    plan.certificate = {.objective = z,
                        .upper_bound = chosen.bound,
                        .gap = 1 - z / chosen.bound,
                        .binding = "memory: no partition holds all models",
                        .method = "sets of models, exchanged one by one; the modules of a partition share it in time",
                        .seconds = 0};
    return plan;
  }

  // [partition as in the problem][module]
  Result<std::vector<std::vector<bool>>> held_by(const PlanFile& from, std::size_t modules) const {
    std::vector<std::vector<bool>> held;
    std::map<std::string, std::size_t> place;
    for (const auto& members : types_.members)
      for (const std::uint32_t member : members) {
        place.emplace(host_.partitions[member].partition.name, held.size());
        held.emplace_back(modules);
      }
    for (const Route& route : from.plan.routes) {
      const Application& theirs = from.applications[route.application];
      std::uint32_t a = 0, m = 0;
      while (a < applications_.size() && applications_[a].name != theirs.name) ++a;
      if (a < applications_.size())
        while (m < applications_[a].modules.size() &&
               applications_[a].modules[m].name != theirs.modules[route.module].name)
          ++m;
      if (a == applications_.size() || m == applications_[a].modules.size())
        return Error{"the plan to begin from has a module '" + theirs.name + "/" + theirs.modules[route.module].name +
                     "', which the applications have not"};
      for (const Stage& stage : route.stages)
        for (const std::uint32_t p : stage.pool) {
          const auto at = place.find(from.plan.partitions[p].name);
          if (at == place.end())
            return Error{"the plan to begin from has a partition '" + from.plan.partitions[p].name +
                         "', which the host has not"};
          held[at->second][number({a, m, 0, 1, 0})] = true;
        }
    }
    return held;
  }

  // Every module on every class where all paths are in time, the quickest class first, in the largest such batches.
  std::vector<Way> runnable() const {
    std::vector<Way> all;
    for (std::uint32_t a = 0; a < applications_.size(); ++a)
      for (std::uint32_t m = 0; m < applications_[a].modules.size(); ++m)
        for (std::uint32_t c = 0; c < types_.types.size(); ++c)
          if (Way w{a, m, c, 1, 0}; !run_us(w).empty()) all.push_back(std::move(w));
    std::stable_sort(all.begin(), all.end(),
                     [&](const Way& x, const Way& y) { return run_us(x).front() < run_us(y).front(); });
    std::vector<Way> ways;
    for (Way& w : all) {
      const bool first = std::none_of(ways.begin(), ways.end(), [&](const Way& k) {
        return k.application == w.application && k.module == w.module;
      });
      ways.push_back(std::move(w));
      if (!first && !in_time(ways)) ways.pop_back();
    }
    widen(ways);
    return ways;
  }

  ResidencyProblem residency_problem(const std::vector<Way>& ways) const {
    ResidencyProblem out;
    for (std::uint32_t a = 0; a < applications_.size(); ++a)
      for (std::uint32_t m = 0; m < applications_[a].modules.size(); ++m) {
        out.module_bytes.push_back(static_cast<double>(bytes_of(*profiles_[a][m])));
        out.application.push_back(a);
        out.weight.push_back(problem_.applications[a].weight * problem_.applications[a].modules[m].items);
      }
    for (std::uint32_t c = 0; c < types_.types.size(); ++c) {
      std::vector<double> cost(out.weight.size(), 0);
      for (const Way& w : ways)
        if (w.of_class == c) cost[number(w)] = run_us(w)[w.batch - 1] / w.batch / 1e6;
      for (std::size_t k = 0; k < types_.members[c].size(); ++k) {
        out.memory_bytes.push_back(static_cast<double>(types_.types[c].memory_bytes));
        out.kind.push_back(c);
        out.cost_s.push_back(cost);
      }
    }
    return out;
  }

  std::size_t number(const Way& w) const {
    std::size_t n = w.module;
    for (std::uint32_t a = 0; a < w.application; ++a) n += applications_[a].modules.size();
    return n;
  }

  // Those of one class that hold the same.
  struct Pool {
    std::vector<std::uint32_t> members;  // of the host's partitions
    std::vector<double> rate;            // [module]
  };
  std::vector<Pool> pools_of(const ResidencyProblem& problem, const Residency& chosen) const {
    std::map<std::pair<std::uint32_t, std::vector<bool>>, Pool> by_set;
    std::size_t p = 0;
    for (const auto& members : types_.members)
      for (const std::uint32_t member : members) {
        Pool& pool = by_set[{problem.kind[p], chosen.holds[p]}];
        pool.members.push_back(member);
        pool.rate.resize(problem.weight.size());
        for (std::size_t m = 0; m < pool.rate.size(); ++m) pool.rate[m] += chosen.rate[p][m];
        ++p;
      }
    std::vector<Pool> out;
    for (auto& [set, pool] : by_set) out.push_back(std::move(pool));
    return out;
  }

  // A way for each pool that holds the module.
  std::vector<Way> resident_ways(const ResidencyProblem& problem, const Residency& chosen, const std::vector<Way>& ways,
                                 double z) const {
    const std::vector<Pool> pools = pools_of(problem, chosen);
    std::vector<Way> out;
    for (const Way& w : ways) {
      const std::size_t m = number(w);
      double all = 0;
      for (const Pool& pool : pools) all += pool.rate[m];
      for (const Pool& pool : pools) {
        if (!holds(problem, chosen, pool, w)) continue;
        out.push_back(w);
        out.back().rate = all > 0 ? z * problem.weight[m] * pool.rate[m] / all : 0;
        out.back().members = pool.members;
      }
    }
    sort(out);
    return out;
  }

  bool holds(const ResidencyProblem& problem, const Residency& chosen, const Pool& pool, const Way& w) const {
    std::size_t p = 0;
    for (const auto& members : types_.members)
      for (const std::uint32_t member : members) {
        if (member == pool.members.front()) return problem.kind[p] == w.of_class && chosen.holds[p][number(w)];
        ++p;
      }
    return false;
  }

  // By the model of waits.
  double promised_by(const std::vector<Way>& ways) const {
    std::map<std::vector<std::uint32_t>, std::uint32_t> pool_of;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> all;
    for (const Way& w : ways) all[{w.application, w.module}] += w.rate;
    std::vector<double> sizes;
    std::vector<PooledUse> uses;
    for (const Way& w : ways) {
      const auto [at, fresh] = pool_of.emplace(w.members, static_cast<std::uint32_t>(sizes.size()));
      if (fresh) sizes.push_back(static_cast<double>(w.members.size()));
      if (!(w.rate > 0)) continue;
      const SharedModule& module = problem_.applications[w.application].modules[w.module];
      uses.push_back({.application = w.application,
                      .module = w.module,
                      .route = static_cast<std::uint32_t>(uses.size()),
                      .share = w.rate / all[{w.application, w.module}],
                      .items = module.items,
                      .pool = at->second,
                      .batch = w.batch,
                      .run_us = module.run_us[w.of_class],
                      .slow_us = module.slow_us[w.of_class]});
    }
    return promised(problem_, applications_, sizes, uses);
  }

  static void sort(std::vector<Way>& ways) {
    std::sort(ways.begin(), ways.end(), [](const Way& x, const Way& y) {
      return std::tie(x.application, x.module, x.of_class) < std::tie(y.application, y.module, y.of_class);
    });
  }

  static bool known(const std::vector<Way>& ways, std::uint32_t a, std::uint32_t m, std::uint32_t c) {
    return std::any_of(ways.begin(), ways.end(),
                       [&](const Way& w) { return w.application == a && w.module == m && w.of_class == c; });
  }

  Plan routes_of_ways(const std::vector<Way>& ways) const {
    Plan plan;
    std::map<std::uint32_t, std::uint32_t> place;  // of a partition of the host in the plan
    for (std::uint32_t c = 0; c < types_.types.size(); ++c)
      for (const std::uint32_t member : types_.members[c]) {
        const bool used = std::any_of(ways.begin(), ways.end(), [&](const Way& w) {
          return w.of_class == c && (w.members.empty() || std::count(w.members.begin(), w.members.end(), member) > 0);
        });
        if (!used) continue;
        place.emplace(member, static_cast<std::uint32_t>(plan.partitions.size()));
        plan.partitions.push_back(host_.partitions[member].partition);
      }
    for (const Way& w : ways) {
      const Profile& profile = *profiles_[w.application][w.module];
      const ProfileTable table(profile);
      const GpuType& type = types_.types[w.of_class];
      const std::uint32_t share = type.share_of(1);
      Stage stage{.first_block = 0, .end_block = profile.blocks};
      for (const std::uint32_t member : w.members.empty() ? types_.members[w.of_class] : w.members)
        stage.pool.push_back(place.at(member));
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
  const std::vector<std::vector<const Profile*>>& profiles_;  // [application][module]
  const Host& host_;
  const HostTypes& types_;
  SharedProblem problem_;
};

}  // namespace

Sharing consider_sharing(const Resources& on, const Plan* dedicated) { return Sharer(on).choose(dedicated); }

Result<Plan> improve_sharing(const Resources& on, const PlanFile& from, double per_load) {
  return Sharer(on).improve(from, per_load);
}

}  // namespace leat::planner
