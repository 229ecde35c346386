// Splitting an application's latency objective over its modules: Harpagon's latency-cost efficiency (Algorithm 2, with
// node merger and cost-direct), or by throughput (Scrooge, InferLine). Times in seconds. Any thread: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/harpagon/harpagon.h"

namespace leat::planner {

// Latency-cost efficiency of moving a module of `rate_rps` from one configuration to another: cost saved per second of
// budget (section III-D). A move that is cheaper and not later is infinitely efficient.
double latency_cost_efficiency(Dispatch dispatch, double rate_rps, const Configuration& from, const Configuration& to);

enum class SplitRule : std::uint8_t { latency_cost, throughput };

struct SplitOptions {
  SplitRule rule = SplitRule::latency_cost;
  Dispatch dispatch = Dispatch::throughput_cost;
  bool merge_nodes = true;     // modules with the same parents and children move together
  std::uint32_t reversed = 0;  // cost-direct: this many last moves are taken back and chosen by cost alone
};

struct Split {
  std::vector<double> budget_s;  // per module; empty: not even the quickest configurations meet the objective
  std::vector<std::uint32_t> configuration;  // the configuration each budget was sized for
  std::uint32_t iterations = 0;
};

// Algorithm 2. Greedy: from the least cost-efficient configurations, the best move that keeps the objective, until
// none.
Split split_latency(const HarpagonProblem& problem, const SplitOptions& options);

// Groups of modules with the same parents and the same children; a module alone is a group of one.
std::vector<std::vector<std::uint32_t>> mergeable_groups(const HarpagonProblem& problem);

// The greedy's next move: which group, to which configuration each member. Exposed for tests of the worked examples.
struct Move {
  std::vector<std::uint32_t> modules, configurations;
  double efficiency = 0, saving = 0;
  bool found() const { return !modules.empty(); }
};
Move best_move(const HarpagonProblem& problem, const std::vector<std::uint32_t>& current, const SplitOptions& options,
               bool by_cost);

}  // namespace leat::planner
