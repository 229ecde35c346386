#include "engine/daemon/deployment/capacity.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/small_lp.h"

namespace leat::daemon {
namespace {

constexpr std::size_t kLargestProgram = 250'000;  // coefficients; asked for with every status

std::int64_t least_ns(const planner::Route& r) {
  std::int64_t sum = 0;
  for (const planner::Stage& s : r.stages) sum += s.latency_by_batch.front().p50_ns;
  return sum;
}

// [application][module]: what the SLO leaves for it when all others on its longest path take their least times.
std::vector<std::vector<std::int64_t>> rooms(const Deployment& d) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::uint32_t a = 0; a < d.applications.size(); ++a) {
    const std::vector<planner::Module>& modules = d.applications[a].modules;
    std::vector<std::int64_t> least(modules.size(), INT64_MAX), before(modules.size(), 0), after(modules.size(), 0);
    for (const planner::Route& r : d.plan.routes)
      if (r.application == a) least[r.module] = std::min(least[r.module], least_ns(r));
    for (std::size_t m = 0; m < modules.size(); ++m)
      for (const std::uint32_t p : modules[m].after) before[m] = std::max(before[m], before[p] + least[p]);
    for (std::size_t m = modules.size(); m-- > 0;)
      for (const std::uint32_t p : modules[m].after) after[p] = std::max(after[p], after[m] + least[m]);
    out.emplace_back();
    for (std::size_t m = 0; m < modules.size(); ++m) out[a].push_back(d.applications[a].slo_ns - before[m] - after[m]);
  }
  return out;
}

// Partition time of a stage for one item, in the cheapest batch that leaves the route's other stages their least times.
double item_s(const planner::Route& r, const planner::Stage& s, std::int64_t room_ns) {
  const std::int64_t own = room_ns - (least_ns(r) - s.latency_by_batch.front().p50_ns);
  double best = static_cast<double>(s.latency_by_batch.front().p50_ns) / 1e9;
  for (std::size_t b = 2; b <= std::min<std::size_t>(r.batch, s.latency_by_batch.size()); ++b) {
    const std::int64_t run = s.latency_by_batch[b - 1].p50_ns;
    if (run <= own) best = std::min(best, static_cast<double>(run) / static_cast<double>(b) / 1e9);
  }
  return best;
}

// Partitions that serve the same stages of the same routes.
struct Sets {
  std::vector<std::vector<std::uint32_t>> members;
  std::vector<std::uint32_t> of;  // [partition]; UINT32_MAX: it serves nothing
};

Sets sets_of(const Deployment& d) {
  std::vector<std::vector<std::uint32_t>> serves(d.plan.partitions.size());
  std::uint32_t stage = 0;
  for (const planner::Route& r : d.plan.routes) {
    for (const planner::Stage& s : r.stages) {
      for (const std::uint32_t p : s.pool) serves[p].push_back(stage);
      ++stage;
    }
  }
  Sets out;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::uint32_t p = 0; p < serves.size(); ++p) {
    out.of.push_back(UINT32_MAX);
    if (serves[p].empty()) continue;
    const auto [at, fresh] = known.emplace(serves[p], static_cast<std::uint32_t>(out.members.size()));
    if (fresh) out.members.emplace_back();
    out.members[out.of[p] = at->second].push_back(p);
  }
  return out;
}

struct Column {  // items a second of a route's stage on a set
  std::uint32_t stage = 0, set = 0, application = 0;
  double seconds = 0;  // of the set, an item
};

}  // namespace

double expected_rps(const Deployment& d, std::size_t a) {
  if (d.applications[a].rate_rps > 0) return d.applications[a].rate_rps;
  double sum = 0;
  for (const ExpectedStream& s : d.expected[a])
    if (s.priority != core::Priority::background && s.period_ns > 0)
      sum += s.count * 1e9 / static_cast<double>(s.period_ns);
  return sum;
}

// Variables: the part z of all rates that is carried, each route's items, and each stage's on each set. Rows: sets'
// time, modules' items, stages' items.
Capacity capacity(const Deployment& d) {
  for (std::uint32_t a = 0; a < d.applications.size(); ++a) {  // no plan yet
    for (std::uint32_t m = 0; m < d.applications[a].modules.size(); ++m) {
      if (std::ranges::none_of(d.plan.routes,
                               [&](const planner::Route& r) { return r.application == a && r.module == m; }))
        return {};
    }
  }
  const auto rooms_ns = rooms(d);
  const Sets sets = sets_of(d);
  std::vector<Column> columns;
  std::vector<std::uint32_t> route_of;  // [stage]
  for (std::uint32_t r = 0; r < d.plan.routes.size(); ++r) {
    const planner::Route& route = d.plan.routes[r];
    for (const planner::Stage& s : route.stages) {
      std::vector<std::uint32_t> on;
      for (const std::uint32_t p : s.pool) on.push_back(sets.of[p]);
      std::ranges::sort(on);
      on.erase(std::unique(on.begin(), on.end()), on.end());
      const double seconds = item_s(route, s, rooms_ns[route.application][route.module]);
      for (const std::uint32_t set : on)
        columns.push_back({static_cast<std::uint32_t>(route_of.size()), set, route.application, seconds});
      route_of.push_back(r);
    }
  }
  std::vector<std::uint32_t> first_module;
  std::uint32_t modules = 0;
  double any = 0;
  for (std::size_t a = 0; a < d.applications.size(); ++a) {
    first_module.push_back(modules);
    modules += static_cast<std::uint32_t>(d.applications[a].modules.size());
    any += expected_rps(d, a);
  }
  const auto n = static_cast<std::uint32_t>(sets.members.size()),
             routes = static_cast<std::uint32_t>(d.plan.routes.size());
  const std::uint32_t rows = n + modules + static_cast<std::uint32_t>(route_of.size()), first_column = 1 + routes,
                      width = first_column + static_cast<std::uint32_t>(columns.size());
  if (any <= 0 || std::size_t{rows} * width > kLargestProgram) return {};
  planner::SmallLp lp = planner::SmallLp::empty(rows, width);
  for (std::uint32_t g = 0; g < n; ++g) lp.right[g] = static_cast<double>(sets.members[g].size());
  for (std::size_t a = 0; a < d.applications.size(); ++a) {
    for (std::uint32_t m = 0; m < d.applications[a].modules.size(); ++m) {
      const std::uint32_t id = first_module[a] + m;
      lp.at(n + id, 0) = expected_rps(d, a) * d.applications[a].modules[m].items_per_request *
                         (id < d.sizes.size() ? d.sizes[id].mean_units() : 1);
    }
  }
  for (std::uint32_t r = 0; r < routes; ++r)
    lp.at(n + first_module[d.plan.routes[r].application] + d.plan.routes[r].module, 1 + r) = -1;
  for (std::uint32_t s = 0; s < route_of.size(); ++s) lp.at(n + modules + s, 1 + route_of[s]) = 1;
  for (std::uint32_t c = 0; c < columns.size(); ++c) {
    lp.at(n + modules + columns[c].stage, first_column + c) = -1;
    lp.at(columns[c].set, first_column + c) = columns[c].seconds;
  }
  lp.set_objective({1});
  lp.maximize();
  std::vector<double> value(width + rows, 0), price(n, 0);
  for (std::uint32_t r = 0; r < rows; ++r) value[lp.basic[r]] = lp.right[r];
  for (std::uint32_t c = 0; c < width; ++c)
    if (lp.other[c] >= width && lp.other[c] - width < n) price[lp.other[c] - width] = -lp.gain[c];
  if (!(lp.value > 0)) return {};
  Capacity out{.load = 1 / lp.value, .partitions = {}, .part = std::vector<double>(d.applications.size(), 0)};
  for (std::uint32_t g = 0; g < n; ++g)
    if (price[g] > 1e-12) out.partitions.insert(out.partitions.end(), sets.members[g].begin(), sets.members[g].end());
  std::ranges::sort(out.partitions);
  for (std::uint32_t c = 0; c < columns.size(); ++c) {
    if (price[columns[c].set] > 1e-12)
      out.part[columns[c].application] += value[first_column + c] * columns[c].seconds * out.load /
                                          static_cast<double>(std::max<std::size_t>(1, out.partitions.size()));
  }
  return out;
}

}  // namespace leat::daemon
