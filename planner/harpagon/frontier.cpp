#include "planner/harpagon/frontier.h"

#include <algorithm>
#include <limits>

#include "planner/harpagon/harpagon.h"

namespace leat::planner {
namespace {

using Preds = std::vector<std::vector<std::uint32_t>>;

// A node of the graph being reduced: a frontier whose choices are points of this node, and where they came from.
struct Reduced {
  Frontier frontier;
  int left = -1, right = -1;  // reduced nodes it was merged from; -1: an original node
  std::uint32_t original = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // choice -> (left point, right point)
  std::vector<std::uint32_t> pred, succ;                       // among live nodes, sorted
  bool live = true;
};

void replace(std::vector<std::uint32_t>& list, std::uint32_t from, std::uint32_t to) {
  std::erase(list, from);
  if (std::find(list.begin(), list.end(), to) == list.end()) list.push_back(to);
  std::sort(list.begin(), list.end());
}

struct Reducer {
  std::vector<Reduced> nodes;
  double slo_s, cost_cap;

  // What the others need at least, so that a merged point beyond it can be forgotten.
  double cost_limit(int a, int b) const {
    double others = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].live && static_cast<int>(i) != a && static_cast<int>(i) != b)
        others += nodes[i].frontier.points().back().cost;
    return (cost_cap - others) * (1 + kRelative);
  }

  void series_points(Reduced& out, const Frontier& a, const Frontier& b, double limit) {
    std::vector<FrontierPoint> all;
    for (std::uint32_t i = 0; i < a.points().size(); ++i)
      for (std::uint32_t j = 0; j < b.points().size(); ++j) {
        const double latency = a.points()[i].latency_s + b.points()[j].latency_s,
                     cost = a.points()[i].cost + b.points()[j].cost;
        if (latency > slo_s * (1 + kRelative)) break;
        if (cost > limit) continue;
        all.push_back({latency, cost, static_cast<std::uint32_t>(out.pairs.size())});
        out.pairs.emplace_back(i, j);
      }
    keep_frontier(out, all);
  }

  static void keep_frontier(Reduced& out, std::vector<FrontierPoint>& all) {
    std::sort(all.begin(), all.end(), [](const FrontierPoint& x, const FrontierPoint& y) {
      return x.latency_s != y.latency_s ? x.latency_s < y.latency_s : x.cost < y.cost;
    });
    std::vector<FrontierPoint> kept;
    for (const FrontierPoint& p : all)
      if (kept.empty() || p.cost < kept.back().cost) kept.push_back(p);
    out.frontier = Frontier::from_sorted(std::move(kept));
  }

  // Parallel nodes share a budget: at every latency of either, the cheapest of both within it.
  void parallel_points(Reduced& out, const Frontier& a, const Frontier& b, double limit) {
    std::vector<FrontierPoint> all;
    std::uint32_t i = 0, j = 0;
    const auto& x = a.points();
    const auto& y = b.points();
    for (double at = std::max(x[0].latency_s, y[0].latency_s);;) {
      while (i + 1 < x.size() && x[i + 1].latency_s <= at) ++i;
      while (j + 1 < y.size() && y[j + 1].latency_s <= at) ++j;
      if (x[i].cost + y[j].cost <= limit && at <= slo_s * (1 + kRelative)) {
        all.push_back({at, x[i].cost + y[j].cost, static_cast<std::uint32_t>(out.pairs.size())});
        out.pairs.emplace_back(i, j);
      }
      const double next_x = i + 1 < x.size() ? x[i + 1].latency_s : kNoPlan,
                   next_y = j + 1 < y.size() ? y[j + 1].latency_s : kNoPlan;
      at = std::min(next_x, next_y);
      if (at == kNoPlan) break;
    }
    keep_frontier(out, all);
  }

  bool merge(std::uint32_t a, std::uint32_t b, bool series) {
    Reduced out;
    out.left = static_cast<int>(a);
    out.right = static_cast<int>(b);
    out.pred = nodes[a].pred;
    out.succ = series ? nodes[b].succ : nodes[a].succ;
    const double limit = cost_limit(out.left, out.right);
    if (series)
      series_points(out, nodes[a].frontier, nodes[b].frontier, limit);
    else
      parallel_points(out, nodes[a].frontier, nodes[b].frontier, limit);
    const bool any = !out.frontier.points().empty();
    nodes[a].live = nodes[b].live = false;
    nodes.push_back(std::move(out));
    const auto made = static_cast<std::uint32_t>(nodes.size() - 1);
    for (Reduced& n : nodes) {
      if (!n.live) continue;
      for (std::uint32_t old : {a, b}) {
        if (std::find(n.pred.begin(), n.pred.end(), old) != n.pred.end()) replace(n.pred, old, made);
        if (std::find(n.succ.begin(), n.succ.end(), old) != n.succ.end()) replace(n.succ, old, made);
      }
    }
    return any;
  }

  // One reduction; 0: none left, -1: infeasible, 1: done one.
  int step() {
    for (std::uint32_t a = 0; a < nodes.size(); ++a) {
      if (!nodes[a].live) continue;
      for (std::uint32_t b = 0; b < nodes.size(); ++b) {
        if (a == b || !nodes[b].live) continue;
        if (a < b && nodes[a].pred == nodes[b].pred && nodes[a].succ == nodes[b].succ)
          return merge(a, b, false) ? 1 : -1;
      }
    }
    for (std::uint32_t a = 0; a < nodes.size(); ++a) {
      if (!nodes[a].live || nodes[a].succ.size() != 1) continue;
      const std::uint32_t b = nodes[a].succ[0];
      if (nodes[b].pred.size() == 1) return merge(a, b, true) ? 1 : -1;
    }
    return 0;
  }

  void expand(std::uint32_t node, std::uint32_t point, std::vector<std::uint32_t>& out) const {
    const Reduced& n = nodes[node];
    if (n.left < 0) {
      out[n.original] = point;
      return;
    }
    const auto [l, r] = n.pairs[n.frontier.points()[point].choice];
    expand(static_cast<std::uint32_t>(n.left), l, out);
    expand(static_cast<std::uint32_t>(n.right), r, out);
  }
};

// What is left when the DAG is not series-parallel: depth first in topological order, cost and latency bounded.
struct Search {
  const Reducer& reducer;
  std::vector<std::uint32_t> order;
  std::vector<double> tail_s, cost_after;  // least latency after a node; least cost of the nodes after position i
  std::vector<double> end_s;
  std::vector<std::uint32_t> now, best;
  double best_cost = kNoPlan;

  void run(std::size_t depth, double cost) {
    if (depth == order.size()) {
      best_cost = cost;
      best = now;
      return;
    }
    const Reduced& n = reducer.nodes[order[depth]];
    double start = 0;
    for (std::uint32_t p : n.pred) start = std::max(start, end_s[p]);
    const auto& points = n.frontier.points();
    for (std::size_t i = points.size(); i-- > 0;) {  // cheapest first
      if (cost + points[i].cost + cost_after[depth] >= best_cost * (1 - kRelative)) break;
      const double end = start + points[i].latency_s;
      if (end + tail_s[order[depth]] > reducer.slo_s * (1 + kRelative)) continue;
      end_s[order[depth]] = end;
      now[depth] = static_cast<std::uint32_t>(i);
      run(depth + 1, cost + points[i].cost);
    }
  }
};

std::vector<std::uint32_t> search_rest(const Reducer& reducer, std::size_t originals) {
  Search s{reducer, {}, {}, {}, {}, {}, {}, std::min(kNoPlan, reducer.cost_cap * (1 + 2 * kRelative))};
  std::vector<std::uint32_t> live;
  for (std::uint32_t i = 0; i < reducer.nodes.size(); ++i)
    if (reducer.nodes[i].live) live.push_back(i);
  std::vector<bool> placed(reducer.nodes.size());
  while (s.order.size() < live.size())
    for (std::uint32_t i : live)
      if (!placed[i] && std::all_of(reducer.nodes[i].pred.begin(), reducer.nodes[i].pred.end(),
                                    [&](std::uint32_t p) { return placed[p]; })) {
        placed[i] = true;
        s.order.push_back(i);
      }
  s.tail_s.assign(reducer.nodes.size(), 0);
  s.end_s.assign(reducer.nodes.size(), 0);
  s.cost_after.assign(s.order.size(), 0);
  s.now.assign(s.order.size(), 0);
  for (std::size_t i = s.order.size(); i-- > 0;) {
    if (i + 1 < s.order.size())
      s.cost_after[i] = s.cost_after[i + 1] + reducer.nodes[s.order[i + 1]].frontier.points().back().cost;
    for (std::uint32_t next : reducer.nodes[s.order[i]].succ)
      s.tail_s[s.order[i]] =
          std::max(s.tail_s[s.order[i]], s.tail_s[next] + reducer.nodes[next].frontier.points()[0].latency_s);
  }
  s.run(0, 0);
  if (s.best.empty()) return {};
  std::vector<std::uint32_t> out(originals);
  for (std::size_t i = 0; i < s.order.size(); ++i) reducer.expand(s.order[i], s.best[i], out);
  return out;
}

}  // namespace

bool Frontier::dominates(double latency_s, double cost) const {
  const auto after = std::upper_bound(points_.begin(), points_.end(), latency_s * (1 + kRelative),
                                      [](double at, const FrontierPoint& p) { return at < p.latency_s; });
  return after != points_.begin() && std::prev(after)->cost <= cost * (1 + kRelative);
}

bool Frontier::add(double latency_s, double cost, std::uint32_t choice) {
  if (dominates(latency_s, cost)) return false;
  const auto at = std::lower_bound(points_.begin(), points_.end(), latency_s,
                                   [](const FrontierPoint& p, double x) { return p.latency_s < x; });
  auto end = at;
  while (end != points_.end() && end->cost >= cost) ++end;
  if (at == end) {
    points_.insert(at, {latency_s, cost, choice});
  } else {
    *at = {latency_s, cost, choice};
    points_.erase(at + 1, end);
  }
  return true;
}

Frontier Frontier::from_sorted(std::vector<FrontierPoint> points) {
  Frontier f;
  f.points_ = std::move(points);
  return f;
}

std::vector<std::uint32_t> cheapest_combination(const std::vector<Frontier>& nodes, const Preds& after, double slo_s,
                                                double cost_cap) {
  Reducer reducer{{}, slo_s, cost_cap};
  reducer.nodes.reserve(2 * nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].points().empty()) return {};
    Reduced n;
    n.frontier = nodes[i];
    n.original = i;
    n.pred = after[i];
    std::sort(n.pred.begin(), n.pred.end());
    reducer.nodes.push_back(std::move(n));
    for (std::uint32_t p : after[i]) reducer.nodes[p].succ.push_back(i);
  }
  for (int done = 1; done != 0;)
    if ((done = reducer.step()) < 0) return {};
  return search_rest(reducer, nodes.size());
}

}  // namespace leat::planner
