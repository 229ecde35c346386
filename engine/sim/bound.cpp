#include "engine/sim/bound.h"

#include <algorithm>
#include <array>

namespace leat::sim {
namespace {

using core::ModuleId;

struct Point {
  double latency, cost;  // ns; cost: partition time per request
};

// Best case of one module: d(b) is the least over its routes.
struct Relaxed {
  double workers = 0;
  std::vector<Point> hull;  // latency ascending, cost descending, convex
  double min_ns = 0, min_cost = 0;
  double items = 1;
};

Relaxed relax(const core::Topology& t, ModuleId id) {
  Relaxed r;
  r.items = t.modules[id].items_per_request;
  std::vector<double> d;
  for (core::RouteId route : t.modules[id].routes) {
    const core::RouteSpec& spec = t.routes[route];
    // Of a route of several stages only the first is looked at: less latency and fewer partitions to share, still a
    // bound.
    const core::StageSpec& stage = spec.stages.front();
    r.workers += static_cast<double>(stage.pool.size());
    for (std::uint32_t b = 1; b <= spec.batch; ++b) {
      const auto ns = static_cast<double>(stage.latency.p50_ns[b - 1]);
      if (d.size() < b) {
        d.push_back(ns);
      } else {
        d[b - 1] = std::min(d[b - 1], ns);
      }
    }
  }
  r.min_ns = *std::min_element(d.begin(), d.end());
  r.min_cost = d[0];
  for (std::size_t b = 1; b <= d.size(); ++b) {
    const Point p{d[b - 1], d[b - 1] / static_cast<double>(b)};
    r.min_cost = std::min(r.min_cost, p.cost);
    if (!r.hull.empty() && (p.cost >= r.hull.back().cost || p.latency <= r.hull.back().latency)) continue;
    // Lower convex hull: the middle of three goes when it lies on or above the line of the others.
    while (r.hull.size() >= 2) {
      const Point &a = r.hull[r.hull.size() - 2], &m = r.hull.back();
      if ((m.cost - a.cost) * (p.latency - a.latency) < (p.cost - a.cost) * (m.latency - a.latency)) break;
      r.hull.pop_back();
    }
    r.hull.push_back(p);
  }
  return r;
}

// The least latency with which the module's cost can be at most `cost`; negative: impossible.
double latency_for(const Relaxed& r, double cost) {
  if (cost >= r.hull.front().cost) return r.hull.front().latency;
  for (std::size_t i = 1; i < r.hull.size(); ++i) {
    const Point &a = r.hull[i - 1], &b = r.hull[i];
    if (cost >= b.cost) return a.latency + (a.cost - cost) / (a.cost - b.cost) * (b.latency - a.latency);
  }
  return -1;
}

// Most jobs of `cost` on one server, each within [arrival + after, arrival + until].
std::uint64_t max_in_time(std::span<const TimeNs> arrivals, double after, double until, double cost) {
  std::uint64_t count = 0;
  double free = 0;
  for (TimeNs at : arrivals) {
    const double start = std::max(free, static_cast<double>(at) + after);
    if (start + cost > static_cast<double>(at) + until) continue;
    free = start + cost;
    ++count;
  }
  return count;
}

}  // namespace

Bound clairvoyant_bound(const core::Topology& t, std::uint32_t application, std::span<const TimeNs> arrivals) {
  const core::ApplicationSpec& app = t.applications[application];
  const ModuleId first = app.modules.front();
  const auto slo = static_cast<double>(app.slo_ns);
  std::vector<Relaxed> relaxed;
  std::array<double, core::kMaxModulesPerApplication> min{}, before{}, after{};
  for (ModuleId m : app.modules) {
    relaxed.push_back(relax(t, m));
    const bool always = t.modules[m].fan_out_cap == 1 && relaxed.back().items >= 1;
    min[m - first] = always ? relaxed.back().min_ns : 0;
  }
  for (ModuleId m : app.modules) {
    for (ModuleId p : t.modules[m].before)
      before[m - first] = std::max(before[m - first], before[p - first] + min[p - first]);
  }
  for (std::size_t i = app.modules.size(); i-- > 0;) {
    for (ModuleId n : t.modules[app.modules[i]].after) after[i] = std::max(after[i], after[n - first] + min[n - first]);
  }
  Bound bound{.requests = arrivals.size()};
  for (std::size_t i = 0; i < relaxed.size(); ++i) {
    if (min[i] == 0) continue;
    bound.requests = std::min(
        bound.requests, max_in_time(arrivals, before[i], slo - after[i], relaxed[i].min_cost / relaxed[i].workers));
  }
  double low = 0, high = 1;  // X in requests per ns
  for (const Relaxed& r : relaxed) high = std::min(high, r.workers / (r.min_cost * r.items));
  const auto fits = [&](double x) {
    std::array<double, core::kMaxModulesPerApplication> latency{};
    for (std::size_t i = 0; i < relaxed.size(); ++i) {
      latency[i] = latency_for(relaxed[i], relaxed[i].workers / (x * relaxed[i].items));
      if (latency[i] < 0) return false;
      if (min[i] == 0) latency[i] = 0;
    }
    return longest_path(t, app, latency) <= slo;
  };
  if (fits(high * (1 - 1e-9))) {
    low = high;
  } else {
    for (int i = 0; i < 60; ++i) (fits((low + high) / 2) ? low : high) = (low + high) / 2;
    low = high;  // on the safe side
  }
  bound.rate_rps = low * 1e9;
  if (low > 0) bound.requests = std::min(bound.requests, max_in_time(arrivals, 0, slo, 1 / low));
  return bound;
}

}  // namespace leat::sim
