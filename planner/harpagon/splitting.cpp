#include "planner/harpagon/splitting.h"

#include <algorithm>
#include <cmath>

#include "planner/dag.h"
#include "planner/harpagon/frontier.h"

namespace leat::planner {
namespace {

struct State {
  const HarpagonProblem& problem;
  const SplitOptions& options;
  std::vector<std::vector<std::uint32_t>> after;

  double latency_s(std::uint32_t m, std::uint32_t c) const {
    return worst_case_latency_s(options.dispatch, problem.modules[m].configurations[c], problem.modules[m].rate_rps);
  }
  double cost(std::uint32_t m, std::uint32_t c) const {
    return problem.modules[m].rate_rps * problem.modules[m].configurations[c].cost_per_request();
  }
  std::vector<double> latencies(const std::vector<std::uint32_t>& current) const {
    std::vector<double> out;
    for (std::uint32_t m = 0; m < current.size(); ++m) out.push_back(latency_s(m, current[m]));
    return out;
  }
};

State state_of(const HarpagonProblem& problem, const SplitOptions& options) {
  return {problem, options, predecessors(problem)};
}

double score_of(const State& s, const Move& move, double added_s, bool by_cost) {
  if (by_cost) return move.saving;
  if (s.options.rule == SplitRule::throughput) {
    const Configuration& c = s.problem.modules[move.modules[0]].configurations[move.configurations[0]];
    return c.throughput_rps() / c.price;
  }
  return added_s > 0 ? move.saving / added_s : kNoPlan;
}

// Moves of one group: for every worst case that some member's configuration has, each member takes its cheapest
// configuration within it (but keeps what it has when that is cheaper).
struct Chooser {
  const State& s;
  const std::vector<std::uint32_t>& current;
  const std::vector<double>& latency_now;
  const std::vector<double>& through;
  bool by_cost;
  Move best;
  double best_score = -1;

  void consider(const std::vector<std::uint32_t>& group, double target_s) {
    Move move;
    double before = 0, after = 0;
    for (std::uint32_t m : group) {
      before = std::max(before, latency_now[m]);
      std::uint32_t pick = current[m];
      for (std::uint32_t c = 0; c < s.problem.modules[m].configurations.size(); ++c)
        if (s.latency_s(m, c) <= target_s && s.cost(m, c) < s.cost(m, pick) * (1 - kRelative)) pick = c;
      after = std::max(after, s.latency_s(m, pick));
      if (pick == current[m]) continue;
      move.saving += s.cost(m, current[m]) - s.cost(m, pick);
      move.modules.push_back(m);
      move.configurations.push_back(pick);
    }
    if (!move.found()) return;
    // Members share parents and children: the longest path through the group changes by its own change.
    double longest = 0;
    for (std::uint32_t m : group) longest = std::max(longest, through[m] - latency_now[m]);
    if (longest + after > s.problem.slo_s * (1 + kRelative)) return;
    const double score = score_of(s, move, after - before, by_cost);
    if (score > best_score || (score == best_score && move.saving > best.saving)) {
      best_score = score;
      move.efficiency = score;
      best = std::move(move);
    }
  }

  // A module on its own: every configuration is a candidate, as in Algorithm 2 line 10.
  void consider_single(std::uint32_t m) {
    const double others = through[m] - latency_now[m];
    for (std::uint32_t c = 0; c < s.problem.modules[m].configurations.size(); ++c) {
      const double saving = s.cost(m, current[m]) - s.cost(m, c), at = s.latency_s(m, c);
      if (saving <= kRelative * s.cost(m, current[m]) || others + at > s.problem.slo_s * (1 + kRelative)) continue;
      Move move{{m}, {c}, 0, saving};
      const double score = score_of(s, move, at - latency_now[m], by_cost);
      if (score > best_score || (score == best_score && saving > best.saving)) {
        best_score = score;
        move.efficiency = score;
        best = std::move(move);
      }
    }
  }
};

Move choose(const State& s, const std::vector<std::vector<std::uint32_t>>& groups,
            const std::vector<std::uint32_t>& current, bool by_cost) {
  const std::vector<double> latency = s.latencies(current), through = longest_paths_through(s.after, latency);
  Chooser chooser{s, current, latency, through, by_cost, {}, -1};
  for (const auto& group : groups) {
    if (group.size() == 1) {
      chooser.consider_single(group[0]);
      continue;
    }
    for (std::uint32_t m : group)
      for (std::uint32_t c = 0; c < s.problem.modules[m].configurations.size(); ++c)
        chooser.consider(group, s.latency_s(m, c));
  }
  return chooser.best;
}

std::vector<std::vector<std::uint32_t>> groups_for(const HarpagonProblem& problem, bool merge) {
  if (merge) return mergeable_groups(problem);
  std::vector<std::vector<std::uint32_t>> out;
  for (std::uint32_t m = 0; m < problem.modules.size(); ++m) out.push_back({m});
  return out;
}

// Line 2: the smallest batch on the dearest hardware; where that is too late, the quickest configuration.
std::vector<std::uint32_t> default_configurations(const State& s) {
  std::vector<std::uint32_t> dearest, quickest;
  for (std::uint32_t m = 0; m < s.problem.modules.size(); ++m) {
    const auto& configurations = s.problem.modules[m].configurations;
    std::uint32_t first = 0, fast = 0;
    for (std::uint32_t c = 1; c < configurations.size(); ++c) {
      const Configuration &x = configurations[c], &y = configurations[first];
      if (x.batch < y.batch || (x.batch == y.batch && x.price > y.price)) first = c;
      if (s.latency_s(m, c) < s.latency_s(m, fast)) fast = c;
    }
    dearest.push_back(first);
    quickest.push_back(fast);
  }
  const double limit = s.problem.slo_s * (1 + kRelative);
  if (longest_path(s.after, s.latencies(dearest)) <= limit) return dearest;
  if (longest_path(s.after, s.latencies(quickest)) <= limit) return quickest;
  return {};
}

}  // namespace

double latency_cost_efficiency(Dispatch dispatch, double rate_rps, const Configuration& from, const Configuration& to) {
  const double saving = rate_rps * (from.cost_per_request() - to.cost_per_request());
  const double added_s = worst_case_latency_s(dispatch, to, rate_rps) - worst_case_latency_s(dispatch, from, rate_rps);
  if (added_s > 0) return saving / added_s;
  return saving > 0 ? kNoPlan : -kNoPlan;
}

std::vector<std::vector<std::uint32_t>> mergeable_groups(const HarpagonProblem& problem) {
  const std::size_t count = problem.modules.size();
  std::vector<std::vector<std::uint32_t>> before(count), next(count), groups;
  for (std::uint32_t m = 0; m < count; ++m) {
    before[m] = problem.modules[m].after;
    std::sort(before[m].begin(), before[m].end());
    for (std::uint32_t p : before[m]) next[p].push_back(m);
  }
  std::vector<bool> taken(count);
  for (std::uint32_t m = 0; m < count; ++m) {
    if (taken[m]) continue;
    groups.push_back({m});
    for (std::uint32_t other = m + 1; other < count; ++other)
      if (!taken[other] && before[other] == before[m] && next[other] == next[m]) {
        groups.back().push_back(other);
        taken[other] = true;
      }
  }
  return groups;
}

Move best_move(const HarpagonProblem& problem, const std::vector<std::uint32_t>& current, const SplitOptions& options,
               bool by_cost) {
  return choose(state_of(problem, options), groups_for(problem, options.merge_nodes), current, by_cost);
}

Split split_latency(const HarpagonProblem& problem, const SplitOptions& options) {
  const State s = state_of(problem, options);
  const auto groups = groups_for(problem, options.merge_nodes);
  Split split;
  std::vector<std::vector<std::uint32_t>> history{default_configurations(s)};
  if (history[0].empty()) return split;
  const auto advance = [&](bool by_cost) {
    const Move move = choose(s, groups, history.back(), by_cost);
    if (!move.found()) return false;
    history.push_back(history.back());
    for (std::size_t i = 0; i < move.modules.size(); ++i) history.back()[move.modules[i]] = move.configurations[i];
    ++split.iterations;
    return true;
  };
  while (advance(false)) {
  }
  if (options.reversed > 0) {
    history.resize(history.size() - std::min<std::size_t>(options.reversed, history.size() - 1));
    while (advance(true)) {
    }
  }
  split.configuration = history.back();
  split.budget_s = s.latencies(split.configuration);
  return split;
}

}  // namespace leat::planner
