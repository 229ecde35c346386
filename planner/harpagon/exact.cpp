#include "planner/harpagon/exact.h"

#include <algorithm>
#include <cmath>

#include "planner/dag.h"

namespace leat::planner {

ModuleFrontier::ModuleFrontier(std::span<const Configuration> configurations, double rate_rps, const Limits& limits)
    : configurations_(configurations), rate_rps_(rate_rps), limits_(limits), nodes_left_(limits.nodes) {
  for (const Configuration& c : configurations_) {
    rate_.push_back(c.throughput_rps());
    per_request_.push_back(c.cost_per_request());
  }
  undivided(0, rate_rps_, 0, 0);
  for (std::uint32_t last = 0; last < configurations_.size(); ++last) padded(last, 0, rate_rps_, 0, 0);
}

bool ModuleFrontier::useless(double latency, double cost) const {
  return latency > limits_.latency_s * (1 + kRelative) || cost > limits_.cost * (1 + kRelative) ||
         frontier_.dominates(latency, cost);
}

void ModuleFrontier::record(double latency, double cost) {
  const auto choice = static_cast<std::uint32_t>(first_.size());
  if (!frontier_.add(latency, cost, choice)) return;
  first_.push_back(static_cast<std::uint32_t>(steps_.size()));
  steps_.insert(steps_.end(), stack_.begin(), stack_.end());
}

// No dummies. `remaining` goes to configurations from `from` on. Everything below costs at least remaining times the
// next configuration's cost per request, and is at least as late as that configuration here: the bound that prunes.
void ModuleFrontier::undivided(std::uint32_t from, double remaining, double latency, double cost) {
  if (nodes_left_ == 0) return;
  --nodes_left_;
  for (std::uint32_t j = from; j < configurations_.size(); ++j) {
    const Configuration& c = configurations_[j];
    const double min = cost + remaining * per_request_[j], at = std::max(latency, c.duration_s + c.batch / remaining);
    if (min > limits_.cost * (1 + kRelative)) return;
    if (useless(at, min)) continue;
    const double fit = remaining / rate_[j];
    if (fit < 1 - kRelative) {
      stack_.push_back({j, fit});
      record(at, min);
      stack_.pop_back();
      continue;
    }
    const double max = std::floor(fit * (1 + kRelative));
    for (double n = max; n >= 1; --n) {
      const double rest = remaining - n * rate_[j];
      stack_.push_back({j, n});
      const bool done = rest <= kRelative * rate_rps_;
      if (done) record(at, min);
      // Only the whole number of machines may be followed by a partial one of the same configuration.
      const std::uint32_t next = n == max ? j : j + 1;
      const bool hopeless =
          !done && (next >= configurations_.size() || useless(at, cost + n * c.price + rest * per_request_[next]));
      if (!done && !hopeless) undivided(next, rest, at, cost + n * c.price);
      stack_.pop_back();
      if (hopeless && n < max) break;  // fewer machines here cost more in the end
    }
  }
}

// Dummies: a machine of `last` comes last, full, and takes what is left of `need` together with d dummies, 0 < d < its
// throughput. Collection rates are known only at the leaf; until then they are at most need + that throughput.
void ModuleFrontier::padded(std::uint32_t last, std::uint32_t from, double need, double latency, double cost) {
  if (nodes_left_ == 0) return;
  --nodes_left_;
  const Configuration& z = configurations_[last];
  const double tail = z.duration_s + z.batch / (need + rate_[last]);
  for (std::uint32_t j = from; j < last; ++j) {
    const Configuration& c = configurations_[j];
    const double at = std::max({latency, tail, c.duration_s + c.batch / (need + rate_[last])});
    if (useless(at, cost + z.price + std::max(0.0, need - rate_[last]) * per_request_[j])) continue;
    for (double n = std::ceil(need / rate_[j] * (1 - kRelative)) - 1; n >= 1; --n) {
      const double rest = need - n * rate_[j];
      const double min = cost + n * c.price + z.price + std::max(0.0, rest - rate_[last]) * per_request_[j + 1];
      if (useless(at, min)) {
        if (rest >= rate_[last]) break;  // from here on fewer machines cost more
        continue;
      }
      stack_.push_back({j, n});
      padded(last, j + 1, rest, at, cost + n * c.price);
      stack_.pop_back();
    }
  }
  padded_leaf(last, need, cost);
}

void ModuleFrontier::padded_leaf(std::uint32_t last, double need, double cost) {
  const Configuration& z = configurations_[last];
  const double machines = std::ceil(need / rate_[last] * (1 - kRelative));
  const double dummies = machines * rate_[last] - need;
  if (dummies <= kRelative * rate_rps_) return;  // then it is no padded schedule
  double remaining = rate_rps_ + dummies, latency = 0;
  for (const Step& s : stack_) {
    const Configuration& c = configurations_[s.configuration];
    latency = std::max(latency, c.duration_s + c.batch / remaining);
    remaining -= s.machines * rate_[s.configuration];
  }
  latency = std::max(latency, z.duration_s + z.batch / (machines * rate_[last]));
  if (useless(latency, cost + machines * z.price)) return;
  stack_.push_back({last, machines});
  record(latency, cost + machines * z.price);
  stack_.pop_back();
}

ModuleSchedule ModuleFrontier::schedule(std::uint32_t choice) const {
  ModuleSchedule out;
  const std::size_t end = choice + 1 < first_.size() ? first_[choice + 1] : steps_.size();
  double served = 0;
  for (std::size_t i = first_[choice]; i < end; ++i) {
    const Step& s = steps_[i];
    if (i > first_[choice] && steps_[i - 1].configuration == s.configuration)
      out.tuples.back().machines += s.machines;
    else
      out.tuples.push_back({configurations_[s.configuration], s.machines});
    served += s.machines * rate_[s.configuration];
  }
  evaluate(Dispatch::throughput_cost, out);
  out.dummy_rps = served - rate_rps_ > kRelative * rate_rps_ ? served - rate_rps_ : 0;
  return out;
}

void evaluate(const HarpagonProblem& problem, HarpagonPlan& plan) {
  plan.cost = 0;
  std::vector<double> latency;
  for (std::size_t m = 0; m < problem.modules.size(); ++m) {
    plan.cost += plan.modules[m].cost;
    latency.push_back(plan.modules[m].latency_s);
  }
  plan.latency_s = longest_path(predecessors(problem), latency);
}

HarpagonPlan solve_exactly(const HarpagonProblem& problem, const HarpagonPlan& start) {
  const std::size_t count = problem.modules.size();
  const auto after = predecessors(problem);
  std::vector<double> quickest, floor(count);
  for (const HarpagonModule& m : problem.modules) {
    double min = kNoPlan;  // no schedule is earlier: w is at most the rate and one machine's dummies
    for (const Configuration& c : m.configurations)
      for (const Configuration& z : m.configurations)
        min = std::min(min, c.duration_s + c.batch / (m.rate_rps + z.throughput_rps()));
    quickest.push_back(min);
  }
  const std::vector<double> through = longest_paths_through(after, quickest);
  double floors = 0;
  for (std::size_t m = 0; m < count; ++m) {
    const HarpagonModule& module = problem.modules[m];
    const double budget = problem.slo_s - (through[m] - quickest[m]);
    double max = 0;
    for (const Configuration& z : module.configurations) max = std::max(max, z.throughput_rps());
    floor[m] = kNoPlan;  // no schedule is cheaper: the best ratio that can meet the budget at all
    for (const Configuration& c : module.configurations)
      if (c.duration_s + c.batch / (module.rate_rps + max) <= budget * (1 + kRelative))
        floor[m] = std::min(floor[m], module.rate_rps * c.cost_per_request());
    floors += floor[m];
  }
  HarpagonPlan plan;
  if (floors == kNoPlan) return plan;
  plan.proven = true;
  std::vector<ModuleFrontier> modules;
  std::vector<Frontier> frontiers;
  modules.reserve(count);
  for (std::size_t m = 0; m < count; ++m) {
    ModuleFrontier::Limits limits;
    limits.latency_s = problem.slo_s - (through[m] - quickest[m]);
    limits.cost = start.cost - (floors - floor[m]);
    modules.emplace_back(problem.modules[m].configurations, problem.modules[m].rate_rps, limits);
    plan.proven = plan.proven && modules.back().complete();
    frontiers.push_back(modules.back().frontier());
    if (frontiers.back().points().empty()) break;
    const double found = frontiers.back().points().back().cost;  // the true floor: tightens the next modules' limits
    floors += found - floor[m];
    floor[m] = found;
  }
  std::vector<std::uint32_t> chosen;
  if (frontiers.size() == count) chosen = cheapest_combination(frontiers, after, problem.slo_s, start.cost);
  if (chosen.empty()) {
    HarpagonPlan same = start;
    same.proven = plan.proven;
    return same;
  }
  for (std::size_t m = 0; m < count; ++m)
    plan.modules.push_back(modules[m].schedule(frontiers[m].points()[chosen[m]].choice));
  evaluate(problem, plan);
  return plan;
}

}  // namespace leat::planner
