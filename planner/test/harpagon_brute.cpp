#include "planner/test/harpagon_brute.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {
namespace {

struct Used {
  std::uint32_t configuration;
  double machines;
};

// Latency of `used` in ratio order under throughput-cost dispatch; the last entry may hold a fraction.
double latency_of(std::span<const Configuration> configurations, const std::vector<Used>& used) {
  ModuleSchedule schedule;
  for (const Used& u : used) schedule.tuples.push_back({configurations[u.configuration], u.machines});
  evaluate(Dispatch::throughput_cost, schedule);
  return schedule.latency_s;
}

// The cheapest schedule within one budget: configuration after configuration, every number of machines.
struct Budget {
  std::span<const Configuration> configurations;
  double rate_rps, budget_s;
  std::vector<Used> used{}, best_used{};
  double best = kNoPlan;

  bool late(const Configuration& c, double collected_rps) const {
    return c.duration_s + c.batch / collected_rps > budget_s * (1 + kRelative);
  }
  void keep(double cost) {
    if (cost >= best * (1 - kRelative) || latency_of(configurations, used) > budget_s * (1 + kRelative)) return;
    best = cost;
    best_used = used;
  }
  void exact(std::uint32_t k, double rest, double cost) {
    if (k == configurations.size() || cost + rest * configurations[k].cost_per_request() >= best * (1 - kRelative))
      return;
    const Configuration& c = configurations[k];
    const double max = std::floor(rest / c.throughput_rps() * (1 + kRelative));
    for (double n = late(c, rest) ? 0 : max; n >= 0; --n) {
      if (n > 0) used.push_back({k, n});
      const double left = rest - n * c.throughput_rps(), paid = cost + n * c.price;
      if (left <= kRelative * rate_rps) {
        keep(paid);
      } else {
        if (n == max) {
          used.push_back({k, left / c.throughput_rps()});
          keep(paid + left * c.cost_per_request());
          used.pop_back();
        }
        exact(k + 1, left, paid);
      }
      if (n > 0) used.pop_back();
    }
  }
  void filled(std::uint32_t last, std::uint32_t k, double rest, double cost) {
    const Configuration& z = configurations[last];
    if (cost + z.price + std::max(0.0, rest - z.throughput_rps()) * configurations[k].cost_per_request() >=
        best * (1 - kRelative))
      return;
    const Configuration& c = configurations[k];
    if (k == last) {
      const double n = std::ceil(rest / z.throughput_rps() * (1 - kRelative));
      used.push_back({last, n});
      keep(cost + n * z.price);
      used.pop_back();
      return;
    }
    const double max =
        late(c, rest + z.throughput_rps()) ? 0 : std::ceil(rest / c.throughput_rps() * (1 - kRelative)) - 1;
    for (double n = max; n >= 0; --n) {
      if (n > 0) used.push_back({k, n});
      filled(last, k + 1, rest - n * c.throughput_rps(), cost + n * c.price);
      if (n > 0) used.pop_back();
    }
  }
};

ModuleSchedule cheapest_within(const HarpagonModule& module, double budget_s) {
  Budget b{module.configurations, module.rate_rps, budget_s};
  b.exact(0, module.rate_rps, 0);
  for (std::uint32_t last = 0; last < module.configurations.size(); ++last) b.filled(last, 0, module.rate_rps, 0);
  ModuleSchedule out;
  double served = 0;
  for (const Used& u : b.best_used) {
    const Configuration& c = module.configurations[u.configuration];
    served += u.machines * c.throughput_rps();
    const bool same = &u != b.best_used.data() && (&u - 1)->configuration == u.configuration;
    if (same)
      out.tuples.back().machines += u.machines;
    else
      out.tuples.push_back({c, u.machines});
  }
  evaluate(Dispatch::throughput_cost, out);
  out.dummy_rps = served - module.rate_rps > kRelative * module.rate_rps ? served - module.rate_rps : 0;
  return out;
}

struct Combination {
  const HarpagonProblem& problem;
  const std::vector<std::vector<ModuleSchedule>>& schedules;  // each by falling budget: rising cost
  std::vector<double> cost_after, end_s, tail_s;
  std::vector<std::size_t> now, best;
  double best_cost = kNoPlan;

  void run(std::size_t m, double cost) {
    if (m == schedules.size()) {
      best_cost = cost;
      best = now;
      return;
    }
    double start = 0;
    for (std::uint32_t p : problem.modules[m].after) start = std::max(start, end_s[p]);
    for (std::size_t i = 0; i < schedules[m].size(); ++i) {
      const ModuleSchedule& s = schedules[m][i];
      if (cost + s.cost + cost_after[m] >= best_cost * (1 - kRelative)) return;
      end_s[m] = start + s.latency_s;
      if (end_s[m] + tail_s[m] > problem.slo_s * (1 + kRelative)) continue;
      now[m] = i;
      run(m + 1, cost + s.cost);
    }
  }
};

}  // namespace

HarpagonPlan brute_force(const HarpagonProblem& problem) {
  std::vector<std::vector<ModuleSchedule>> schedules;
  for (const HarpagonModule& m : problem.modules) {
    schedules.emplace_back();
    for (double budget = problem.slo_s;;) {
      ModuleSchedule s = cheapest_within(m, budget);
      if (!s.feasible()) break;
      budget = s.latency_s * (1 - 4 * kRelative);
      schedules.back().push_back(std::move(s));
    }
    if (schedules.back().empty()) return {};
  }
  const std::size_t count = schedules.size();
  Combination c{problem,
                schedules,
                std::vector<double>(count),
                std::vector<double>(count),
                std::vector<double>(count),
                std::vector<std::size_t>(count),
                {}};
  for (std::size_t m = count; m-- > 0;) {
    if (m + 1 < count) c.cost_after[m] = c.cost_after[m + 1] + schedules[m + 1].front().cost;
    for (std::uint32_t p : problem.modules[m].after)
      c.tail_s[p] = std::max(c.tail_s[p], c.tail_s[m] + schedules[m].back().latency_s);
  }
  c.run(0, 0);
  HarpagonPlan plan;
  if (c.best.empty()) return plan;
  for (std::size_t m = 0; m < count; ++m) plan.modules.push_back(schedules[m][c.best[m]]);
  evaluate(problem, plan);
  plan.proven = true;
  return plan;
}

Frontier every_schedule(std::span<const Configuration> configurations, double rate_rps) {
  Frontier frontier;
  std::vector<Used> used;
  const auto keep = [&] {
    ModuleSchedule s;
    for (const Used& u : used) s.tuples.push_back({configurations[u.configuration], u.machines});
    evaluate(Dispatch::throughput_cost, s);
    frontier.add(s.latency_s, s.cost, 0);
  };
  const auto visit = [&](const auto& self, std::uint32_t k, double rest) -> void {
    if (k == configurations.size()) return;
    const double t = configurations[k].throughput_rps();
    const auto max = static_cast<int>(std::ceil(rest / t * (1 - kRelative)));
    for (int n = 0; n <= max; ++n) {
      const double left = rest - n * t;
      if (n > 0) used.push_back({k, static_cast<double>(n)});
      if (left <= kRelative * rate_rps) {
        keep();  // exactly served, or with dummies on the last machine
      } else {
        if (left < t) {
          used.push_back({k, left / t});
          keep();
          used.pop_back();
        }
        self(self, k + 1, left);
      }
      if (n > 0) used.pop_back();
    }
  };
  visit(visit, 0, rate_rps);
  return frontier;
}

}  // namespace leat::planner
