#include "planner/build/min_cost.h"

#include <algorithm>
#include <numeric>

#include "planner/pooled/solver.h"

namespace leat::planner {
namespace {

constexpr double kEnough = 1 - 1e-9;
constexpr double kMaxVectors = 200'000;

struct Counts {
  double cost = 0;
  std::vector<std::uint32_t> of;
};

std::vector<Counts> by_cost(const PooledProblem& problem, const std::vector<double>& cost) {
  std::vector<Counts> all{{0, {}}};
  for (std::size_t t = 0; t < problem.types.size(); ++t) {
    std::vector<Counts> next;
    for (const Counts& c : all) {
      for (std::uint32_t n = 0; n <= problem.types[t].count; ++n) {
        next.push_back(c);
        next.back().of.push_back(n);
        next.back().cost += cost[t] * n;
      }
    }
    all = std::move(next);
  }
  std::stable_sort(all.begin(), all.end(), [](const Counts& a, const Counts& b) { return a.cost < b.cost; });
  return all;
}

PooledProblem with(const PooledProblem& problem, const std::vector<std::uint32_t>& counts) {
  PooledProblem p = problem;
  for (std::size_t t = 0; t < counts.size(); ++t) p.types[t].count = counts[t];
  return p;
}

MinCost one_by_one(const PooledProblem& problem, const std::vector<double>& cost,
                   const std::function<PooledSolution(const PooledProblem&)>& solve) {
  MinCost out;
  PooledProblem p = problem;
  out.solution = solve(p);
  out.found = out.solution.feasible && out.solution.certificate.objective >= kEnough;
  std::vector<std::size_t> dearest(cost.size());
  std::iota(dearest.begin(), dearest.end(), std::size_t{0});
  std::stable_sort(dearest.begin(), dearest.end(), [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
  for (const std::size_t t : dearest) {
    std::uint32_t low = 0;  // fewer are not enough; p.types[t].count are
    while (out.found && low < p.types[t].count) {
      PooledProblem fewer = p;
      fewer.types[t].count = low + (p.types[t].count - low) / 2;
      PooledSolution s = solve(fewer);
      if (s.feasible && s.certificate.objective >= kEnough)
        p = fewer, out.solution = std::move(s);
      else
        low = fewer.types[t].count + 1;
    }
  }
  for (std::size_t t = 0; t < cost.size(); ++t) out.cost += cost[t] * p.types[t].count;
  return out;
}

}  // namespace

MinCost find_min_cost(const PooledProblem& problem, const std::vector<double>& cost,
                      const std::function<PooledSolution(const PooledProblem&)>& solve) {
  double vectors = 1;
  for (const GpuType& t : problem.types) vectors *= t.count + 1.0;
  if (vectors > kMaxVectors) return one_by_one(problem, cost, solve);
  MinCost out;
  std::vector<std::vector<double>>
      prices;  // of relaxations: counts whose worth is below 1 by any of them carry too little
  bool proven = true;
  for (const Counts& c : by_cost(problem, cost)) {
    const bool ruled_out = std::any_of(prices.begin(), prices.end(), [&](const auto& price) {
      double worth = 0;
      for (std::size_t t = 0; t < price.size(); ++t) worth += price[t] * c.of[t];
      return worth < kEnough;
    });
    if (ruled_out || std::all_of(c.of.begin(), c.of.end(), [](std::uint32_t n) { return n == 0; })) continue;
    const PooledProblem p = with(problem, c.of);
    std::vector<double> price = pooled_prices(p);
    double worth = 0;
    for (std::size_t t = 0; t < price.size(); ++t) worth += price[t] * c.of[t];
    if (!price.empty()) prices.push_back(std::move(price));
    if (worth < kEnough) continue;
    PooledSolution s = solve(p);
    if (s.feasible && s.certificate.objective >= kEnough) {
      out = {true, c.cost, proven ? c.cost : out.bound, std::move(s)};
      return out;
    }
    if (proven && s.certificate.upper_bound >= kEnough) proven = false, out.bound = c.cost;
  }
  return out;
}

}  // namespace leat::planner
