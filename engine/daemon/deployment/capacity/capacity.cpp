#include "engine/daemon/deployment/capacity/capacity.h"

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

// Partition time of a stage for one item, in the cheapest batch that leaves the route's other stages their least times:
// where batches overlap, less than a batch's latency.
double item_s(const Deployment& d, const planner::Route& r, std::size_t stage, std::int64_t room_ns) {
  const planner::Stage& s = r.stages[stage];
  const std::int64_t own = room_ns - (least_ns(r) - s.latency_by_batch.front().p50_ns);
  double best = static_cast<double>(s.latency_by_batch.front().p50_ns) / 1e9;
  for (std::size_t b = 2; b <= std::min<std::size_t>(r.batch, s.latency_by_batch.size()); ++b) {
    const std::int64_t run = s.latency_by_batch[b - 1].p50_ns;
    if (run <= own) best = std::min(best, static_cast<double>(run) / static_cast<double>(b) / 1e9);
  }
  return best * (1000 - overlap_permille_of(d, r, stage)) / 1000;
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

bool has_routes(const Deployment& d) {
  for (std::uint32_t a = 0; a < d.applications.size(); ++a) {
    for (std::uint32_t m = 0; m < d.applications[a].modules.size(); ++m) {
      const auto is_its = [&](const planner::Route& r) { return r.application == a && r.module == m; };
      if (std::ranges::none_of(d.plan.routes, is_its)) return false;
    }
  }
  return true;
}

// A linear program. Variables: the part z of all rates that is carried, each route's items, and each stage's on each
// set. Rows: sets' time, modules' items, stages' items.
class Program {
 public:
  explicit Program(const Deployment& d) : d_(d), sets_(sets_of(d)) {
    add_columns();
    for (const planner::Application& app : d.applications) {
      first_module_.push_back(modules_);
      modules_ += static_cast<std::uint32_t>(app.modules.size());
    }
  }
  [[nodiscard]] std::size_t size() const { return std::size_t{rows()} * width(); }
  [[nodiscard]] Capacity solve() const;

 private:
  [[nodiscard]] std::uint32_t sets() const { return static_cast<std::uint32_t>(sets_.members.size()); }
  [[nodiscard]] std::uint32_t stages() const { return static_cast<std::uint32_t>(route_of_.size()); }
  [[nodiscard]] std::uint32_t first_column() const { return 1 + static_cast<std::uint32_t>(d_.plan.routes.size()); }
  [[nodiscard]] std::uint32_t rows() const { return sets() + modules_ + stages(); }
  [[nodiscard]] std::uint32_t width() const { return first_column() + static_cast<std::uint32_t>(columns_.size()); }
  void add_columns();
  [[nodiscard]] planner::SmallLp rows_and_columns() const;
  [[nodiscard]] Capacity read(const planner::SmallLp& lp) const;

  const Deployment& d_;
  Sets sets_;
  std::vector<Column> columns_;
  std::vector<std::uint32_t> route_of_;  // [stage]
  std::vector<std::uint32_t> first_module_;
  std::uint32_t modules_ = 0;
};

void Program::add_columns() {
  const auto rooms_ns = rooms(d_);
  for (std::uint32_t r = 0; r < d_.plan.routes.size(); ++r) {
    const planner::Route& route = d_.plan.routes[r];
    for (std::size_t s = 0; s < route.stages.size(); ++s) {
      std::vector<std::uint32_t> on;
      for (const std::uint32_t p : route.stages[s].pool) on.push_back(sets_.of[p]);
      std::ranges::sort(on);
      on.erase(std::unique(on.begin(), on.end()), on.end());
      const double seconds = item_s(d_, route, s, rooms_ns[route.application][route.module]);
      for (const std::uint32_t set : on) columns_.push_back({stages(), set, route.application, seconds});
      route_of_.push_back(r);
    }
  }
}

planner::SmallLp Program::rows_and_columns() const {
  const std::uint32_t n = sets();
  planner::SmallLp lp = planner::SmallLp::empty(rows(), width());
  for (std::uint32_t g = 0; g < n; ++g) lp.right[g] = static_cast<double>(sets_.members[g].size());
  for (std::size_t a = 0; a < d_.applications.size(); ++a) {
    for (std::uint32_t m = 0; m < d_.applications[a].modules.size(); ++m) {
      const std::uint32_t id = first_module_[a] + m;
      lp.at(n + id, 0) = expected_rps(d_, a) * d_.applications[a].modules[m].items_per_request *
                         (id < d_.sizes.size() ? d_.sizes[id].mean_units() : 1);
    }
  }
  for (std::uint32_t r = 0; r < d_.plan.routes.size(); ++r)
    lp.at(n + first_module_[d_.plan.routes[r].application] + d_.plan.routes[r].module, 1 + r) = -1;
  for (std::uint32_t s = 0; s < stages(); ++s) lp.at(n + modules_ + s, 1 + route_of_[s]) = 1;
  for (std::uint32_t c = 0; c < columns_.size(); ++c) {
    lp.at(n + modules_ + columns_[c].stage, first_column() + c) = -1;
    lp.at(columns_[c].set, first_column() + c) = columns_[c].seconds;
  }
  lp.set_objective({1});
  return lp;
}

Capacity Program::solve() const {
  planner::SmallLp lp = rows_and_columns();
  lp.maximize();
  if (!(lp.value > 0)) return {};
  return read(lp);
}

// The sets in the way are those whose time has a price; who has how much of it is in the variables.
Capacity Program::read(const planner::SmallLp& lp) const {
  constexpr double kNothing = 1e-12;
  std::vector<double> value(width() + rows(), 0), price(sets(), 0);
  for (std::uint32_t r = 0; r < rows(); ++r) value[lp.basic[r]] = lp.right[r];
  for (std::uint32_t c = 0; c < width(); ++c)
    if (lp.other[c] >= width() && lp.other[c] - width() < sets()) price[lp.other[c] - width()] = -lp.gain[c];
  Capacity out{.load = 1 / lp.value, .partitions = {}, .part = std::vector<double>(d_.applications.size(), 0)};
  for (std::uint32_t g = 0; g < sets(); ++g)
    if (price[g] > kNothing)
      out.partitions.insert(out.partitions.end(), sets_.members[g].begin(), sets_.members[g].end());
  std::ranges::sort(out.partitions);
  for (std::uint32_t c = 0; c < columns_.size(); ++c) {
    if (price[columns_[c].set] > kNothing)
      out.part[columns_[c].application] += value[first_column() + c] * columns_[c].seconds * out.load /
                                           static_cast<double>(std::max<std::size_t>(1, out.partitions.size()));
  }
  return out;
}

}  // namespace

double expected_rps(const Deployment& d, std::size_t a) {
  if (d.applications[a].rate_rps > 0) return d.applications[a].rate_rps;
  double sum = 0;
  for (const ExpectedStream& s : d.expected[a])
    if (s.priority != core::Priority::background && s.period_ns > 0)
      sum += s.count * 1e9 / static_cast<double>(s.period_ns);
  return sum;
}

Capacity capacity(const Deployment& d) {
  double any = 0;
  for (std::size_t a = 0; a < d.applications.size(); ++a) any += expected_rps(d, a);
  if (any <= 0 || !has_routes(d)) return {};  // without routes: no plan yet
  const Program program(d);
  return program.size() > kLargestProgram ? Capacity{} : program.solve();
}

}  // namespace leat::daemon
