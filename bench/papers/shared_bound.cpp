#include "bench/papers/shared_bound.h"

#include <algorithm>
#include <numeric>

namespace leat::bench {
namespace {

// The fastest route of a module is that of a partition of speed 1.
const std::vector<core::TimeNs>& table(const core::Topology& t, core::ModuleId m) {
  const auto* best = &t.routes[t.modules[m].routes.front()].stages.front().latency.p50_ns;
  for (core::RouteId r : t.modules[m].routes) {
    const auto& own = t.routes[r].stages.front().latency.p50_ns;
    if (own.front() < best->front()) best = &own;
  }
  return *best;
}

void paths_from(const core::Topology& t, core::ModuleId m, std::vector<core::ModuleId> before,
                std::vector<std::vector<core::ModuleId>>& out) {
  before.push_back(m);
  if (t.modules[m].after.empty()) out.push_back(before);
  for (core::ModuleId next : t.modules[m].after) paths_from(t, next, before, out);
}

// max over mu >= 0 of: sum over modules of min over b of (m d / b + [on the path] mu d), less mu SLO. It is concave in
// mu.
double dual(const core::Topology& t, const core::ApplicationSpec& app, const std::vector<core::ModuleId>& path) {
  const auto value = [&](double mu) {
    double sum = -mu * static_cast<double>(app.slo_ns);
    for (core::ModuleId m : app.modules) {
      const bool on = std::find(path.begin(), path.end(), m) != path.end();
      double min = 1e300;
      const auto& d = table(t, m);
      for (std::size_t b = 1; b <= d.size(); ++b) {
        const auto run = static_cast<double>(d[b - 1]);
        min = std::min(min, t.modules[m].items_per_request * run / static_cast<double>(b) + (on ? mu * run : 0));
      }
      sum += min;
    }
    return sum;
  };
  double low = 0, high = 4;
  for (int i = 0; i < 100; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (value(a) < value(b) ? low : high) = value(a) < value(b) ? a : b;
  }
  return std::max(value(0), value(low));
}

}  // namespace

double min_cost_ns(const core::Topology& t, std::uint32_t application) {
  const core::ApplicationSpec& app = t.applications[application];
  std::vector<std::vector<core::ModuleId>> paths;
  for (core::ModuleId m : app.modules) {
    if (t.modules[m].before.empty()) paths_from(t, m, {}, paths);
  }
  double best = 0;
  for (const auto& path : paths) best = std::max(best, dual(t, app, path));
  return best;
}

std::vector<std::uint64_t> shared_bound(const core::Topology& t, double n, const std::vector<sim::Arrival>& arrivals,
                                        const std::vector<double>& weights) {
  std::vector<double> cost;
  for (std::uint32_t a = 0; a < t.applications.size(); ++a) cost.push_back(min_cost_ns(t, a));
  std::vector<std::uint32_t> order(cost.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return weights[a] / cost[a] > weights[b] / cost[b]; });
  // An application's room is what those before it leave: together with them it may not exceed the bucket either.
  std::vector<std::uint64_t> out(cost.size(), 0);
  std::vector<std::uint8_t> in(arrivals.size(), 0);
  for (std::uint32_t chosen : order) {
    const auto slo = static_cast<double>(t.applications[chosen].slo_ns);
    // Backwards limits: a request may only enter where no later one of those before it overflows for its sake.
    std::vector<double> level(arrivals.size() + 1, 0), room(arrivals.size() + 1, 1e300);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const double fell = i == 0 ? 0 : n * static_cast<double>(arrivals[i].at_ns - arrivals[i - 1].at_ns);
      level[i + 1] = std::max(0.0, level[i] - fell) + (in[i] != 0 ? cost[arrivals[i].stream] : 0);
    }
    for (std::size_t i = arrivals.size(); i-- > 0;) {
      room[i] = in[i] != 0 ? n * static_cast<double>(t.applications[arrivals[i].stream].slo_ns) - level[i + 1] : 1e300;
      const double fall =
          i + 1 < arrivals.size() ? n * static_cast<double>(arrivals[i + 1].at_ns - arrivals[i].at_ns) : 0;
      room[i] = std::min(room[i], i + 1 < arrivals.size() ? room[i + 1] + std::min(fall, level[i + 1]) : 1e300);
    }
    double extra = 0, v = 0;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const double fell = i == 0 ? 0 : n * static_cast<double>(arrivals[i].at_ns - arrivals[i - 1].at_ns);
      v = std::max(0.0, v - fell);
      extra = std::max(0.0, v - std::max(0.0, level[i] - fell));
      if (in[i] != 0) {
        v += cost[arrivals[i].stream];
      } else if (arrivals[i].stream == chosen && v + cost[chosen] <= n * slo && extra + cost[chosen] <= room[i]) {
        in[i] = 1;
        v += cost[chosen];
        ++out[chosen];
      }
    }
  }
  return out;
}

}  // namespace leat::bench
