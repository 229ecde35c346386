#include "engine/core/model/model.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace leat::core {
namespace {

// Sets that grow together.
class Unions {
 public:
  explicit Unions(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  [[nodiscard]] std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[std::max(root(a), root(b))] = std::min(root(a), root(b)); }

 private:
  std::vector<std::size_t> parent_;
};

// Both ends of a route's transfers may use the links of all hosts of their pools.
bool leaves_its_host(const Topology& t, const RouteSpec& route) {
  if (t.hosts.empty() || route.stages.size() < 2) return false;
  const std::uint32_t host = t.partitions[route.stages.front().pool.front()].host;
  for (const StageSpec& s : route.stages) {
    for (PartitionId p : s.pool) {
      if (t.partitions[p].host != host) return true;
    }
  }
  return false;
}

}  // namespace

Model::Model(const Topology& t) : topology_(t), modules_(t.modules.size()) {
  for (const ApplicationSpec& app : topology_.applications) {
    for (std::size_t i = 0; i < app.modules.size(); ++i) {
      modules_[app.modules[i]].application = topology_.modules[app.modules[i]].application;
      modules_[app.modules[i]].local = static_cast<std::uint32_t>(i);
    }
  }
  make_tables();
  measure_modules();
  find_components();
  measure_costs();
}

void Model::find_components() {
  const Topology& t = topology_;
  const std::size_t apps = t.applications.size(), parts = t.partitions.size();
  Unions sets(apps + parts + t.hosts.size());
  for (const RouteSpec& route : t.routes) {
    const bool far = leaves_its_host(t, route);
    for (const StageSpec& stage : route.stages) {
      for (PartitionId p : stage.pool) {
        sets.join(t.modules[route.module].application, apps + p);
        if (far) sets.join(apps + p, apps + parts + t.partitions[p].host);
      }
    }
  }
  std::vector<ComponentId> of_root(apps + parts + t.hosts.size(), kNone);
  of_application_.resize(apps);
  of_partition_.assign(parts, kNone);
  slot_of_partition_.assign(parts, 0);
  for (std::uint32_t a = 0; a < apps; ++a) {
    ComponentId& id = of_root[sets.root(a)];
    if (id == kNone) {
      id = static_cast<ComponentId>(components_.size());
      components_.emplace_back();
    }
    of_application_[a] = id;
    components_[id].applications.push_back(a);
  }
  for (ModuleId m = 0; m < modules_.size(); ++m) {
    Component& c = components_[component_of(m)];
    modules_[m].slot = static_cast<std::uint32_t>(c.modules.size());
    c.modules.push_back(m);
  }
  std::vector<ModuleId> user(parts, kNone);
  for (const RouteSpec& route : t.routes) {
    Component& c = components_[component_of(route.module)];
    c.pipelined = c.pipelined || route.stages.size() > 1;
    for (PartitionId p : route.stages.front().pool) {
      c.shared = c.shared || (user[p] != kNone && user[p] != route.module);
      user[p] = route.module;
    }
  }
  for (PartitionId p = 0; p < parts; ++p) {  // one that no route uses belongs to nobody
    of_partition_[p] = of_root[sets.root(apps + p)];
    if (of_partition_[p] == kNone) continue;
    slot_of_partition_[p] = static_cast<std::uint32_t>(components_[of_partition_[p]].partitions.size());
    components_[of_partition_[p]].partitions.push_back(p);
  }
}

void Model::make_tables() {
  for (const RouteSpec& route : topology_.routes) {
    for (const bool safe : {false, true}) {
      (safe ? safe_ : run_).push_back(static_cast<std::uint32_t>(table_.size()));
      for (std::uint32_t b = 0; b <= route.batch; ++b) {
        const std::uint32_t items = std::max(b, 1u);
        TimeNs sum = 0;
        for (std::size_t k = 0; k < route.stages.size(); ++k) {
          const StageSpec& stage = route.stages[k];
          sum += (safe ? stage.latency.p99_ns : stage.latency.p50_ns)[items - 1];
          if (k + 1 < route.stages.size())
            sum += link_ns(stage.transfer_bytes * items, stage.pool.front(), route.stages[k + 1].pool.front());
        }
        table_.push_back(sum);
      }
    }
  }
}

void Model::measure_modules() {
  for (const ApplicationSpec& app : topology_.applications) {
    for (ModuleId id : app.modules) {
      ModuleModel& m = modules_[id];
      const ModuleSpec& spec = topology_.modules[id];
      m.min_ns = kNever;
      for (RouteId r : spec.routes) {
        m.max_items = std::max(m.max_items, topology_.routes[r].batch);
        m.min_ns = std::min(m.min_ns, run_ns(r)[1]);
      }
      double parent = 0;
      for (ModuleId before : spec.before) parent = std::max(parent, topology_.modules[before].items_per_request);
      const double ratio = spec.before.empty() ? 1 : spec.items_per_request / parent;
      if (spec.fan_out_cap == 1 && ratio < 1) m.branch_permille = static_cast<std::uint32_t>(ratio * 1000 + 0.5);
    }
    for (std::size_t i = app.modules.size(); i-- > 0;) {
      ModuleModel& m = modules_[app.modules[i]];
      for (ModuleId next : topology_.modules[app.modules[i]].after)
        m.min_after_ns = std::max(m.min_after_ns, modules_[next].min_after_ns + modules_[next].min_ns);
    }
  }
}

// The largest common batch with which twice the longest path keeps the SLO. Modules that share partitions take each
// other's time; of groups that do not, the one that is busiest bounds the application.
void Model::measure_costs() {
  const Topology& t = topology_;
  for (const ApplicationSpec& app : t.applications) {
    const ModuleId first = app.modules.front();
    std::array<TimeNs, kMaxModulesPerApplication> d{};
    const auto mean_run = [&](ModuleId m, std::uint32_t b) {
      double sum = 0, n = 0;
      for (RouteId r : t.modules[m].routes) {
        const auto pool = static_cast<double>(t.routes[r].stages.front().pool.size());
        sum += pool * static_cast<double>(run_ns(r)[std::min(b, t.routes[r].batch)]);
        n += pool;
      }
      return sum / n;
    };
    std::uint32_t batch = 1;
    for (bool fits = true; fits && batch < kMaxBatch;) {
      for (ModuleId m : app.modules) d[m - first] = static_cast<TimeNs>(mean_run(m, batch + 1));
      fits = 2 * longest_path(t, app, d) <= app.slo_ns;
      batch += fits ? 1 : 0;
    }
    const auto batch_of = [&](ModuleId m) {
      std::uint32_t max = 1;
      for (RouteId r : t.modules[m].routes) max = std::max(max, t.routes[r].batch);
      return std::min(batch, max);
    };
    Unions groups(app.modules.size());
    std::vector<std::size_t> user(t.partitions.size(), app.modules.size());
    std::vector<std::vector<PartitionId>> pool(app.modules.size());
    for (ModuleId m : app.modules) {
      for (RouteId r : t.modules[m].routes) {
        for (PartitionId p : t.routes[r].stages.front().pool) {
          if (user[p] < app.modules.size()) groups.join(user[p], m - first);
          if (user[p] == app.modules.size()) pool[m - first].push_back(p);
          user[p] = m - first;
        }
      }
    }
    std::vector<double> work(app.modules.size(), 0), size(app.modules.size(), 0), unit(app.modules.size(), 0);
    for (ModuleId m : app.modules) {
      const std::uint32_t b = batch_of(m);
      unit[m - first] = mean_run(m, b) / b;
      work[groups.root(m - first)] += t.modules[m].units_per_request() * unit[m - first];
      size[groups.root(m - first)] += static_cast<double>(pool[m - first].size());
    }
    double cost = 1;
    for (std::size_t g = 0; g < work.size(); ++g) cost = size[g] > 0 ? std::max(cost, work[g] / size[g]) : cost;
    cost_.push_back(static_cast<TimeNs>(cost));
    // Divided among the modules by what each takes of its own partitions.
    double all = 0, lone = 0;
    for (ModuleId m : app.modules) {
      unit[m - first] /= std::max(1.0, size[groups.root(m - first)]);
      all += t.modules[m].units_per_request() * unit[m - first];
    }
    for (ModuleId m : app.modules) {
      modules_[m].unit_ns = all > 0 ? unit[m - first] * cost / all : 0;
      modules_[m].lone_ns = modules_[m].unit_ns * mean_run(m, 1) * batch_of(m) / mean_run(m, batch_of(m));
      lone += t.modules[m].units_per_request() * modules_[m].lone_ns;
    }
    lone_cost_.push_back(static_cast<TimeNs>(lone));
  }
}

TimeNs Model::link_ns(std::int64_t bytes, PartitionId from, PartitionId to) const noexcept {
  if (topology_.hosts.empty()) return 0;
  const std::uint32_t a = topology_.partitions[from].host, b = topology_.partitions[to].host;
  if (a == b) return 0;
  double slow = 0;
  for (double speed : {topology_.hosts[a].up_bytes_per_ns, topology_.hosts[b].down_bytes_per_ns}) {
    if (speed > 0 && (slow == 0 || speed < slow)) slow = speed;
  }
  return slow > 0 ? static_cast<TimeNs>(static_cast<double>(bytes) / slow) : 0;
}

}  // namespace leat::core
