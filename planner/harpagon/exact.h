// The cheapest plan of a whole application, exactly: each module's Pareto frontier of (worst-case latency, cost) over
// every schedule of the machine model, then the cheapest combination of frontiers within the objective.
//
// The space (throughput-cost dispatch): n_k full machines of every configuration k, in ratio order, and either
//   - no dummy request, and at most one partial machine, which is the last in ratio order; or
//   - dummy requests, fewer than the last machine's throughput, such that every machine is full;
// with d_k + b_k / w_k within the module's budget for each machine, where w_k is the rate of k's tuple and all after
// it, and any real-valued split of the objective. Algorithm 1, Theorem 2's dummies, latency reassignment and every
// splitting heuristic of the paper stay inside it, so that no plan of the paper's can be cheaper.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/harpagon/frontier.h"
#include "planner/harpagon/harpagon.h"

namespace leat::planner {

// Schedules of one module: a frontier point's `choice` indexes `schedule()`.
class ModuleFrontier {
 public:
  struct Limits {
    double latency_s = kNoPlan;  // later or costlier schedules are of no interest
    double cost = kNoPlan;
    std::uint64_t nodes = 100'000;  // of the search; when they are spent the frontier is incomplete
  };
  // configurations in ratio order (order_by_ratio); they must outlive this object.
  ModuleFrontier(std::span<const Configuration> configurations, double rate_rps, const Limits& limits);

  const Frontier& frontier() const { return frontier_; }
  ModuleSchedule schedule(std::uint32_t choice) const;
  bool complete() const { return nodes_left_ > 0; }

 private:
  struct Step {
    std::uint32_t configuration;
    double machines;
  };
  void undivided(std::uint32_t from, double remaining, double latency, double cost);
  void padded(std::uint32_t last, std::uint32_t from, double need, double latency, double cost);
  void padded_leaf(std::uint32_t last, double need, double cost);
  void record(double latency, double cost);
  bool useless(double latency, double cost) const;

  std::span<const Configuration> configurations_;
  double rate_rps_;
  Limits limits_;
  std::uint64_t nodes_left_;
  Frontier frontier_;
  std::vector<Step> stack_;
  std::vector<Step> steps_;           // of all recorded schedules, one after the other
  std::vector<std::uint32_t> first_;  // schedule -> its first step
  std::vector<double> rate_, per_request_;
};

struct HarpagonPlan {
  std::vector<ModuleSchedule> modules;
  double cost = kNoPlan;
  double latency_s = 0;          // longest path
  std::uint32_t iterations = 0;  // of the splitting heuristic
  bool proven = false;           // nothing in the space above is cheaper
  bool feasible() const { return cost < kNoPlan; }
};

// Fills cost and latency from the modules' schedules.
void evaluate(const HarpagonProblem& problem, HarpagonPlan& plan);

// `start`: any plan, used as a bound; may be infeasible. proven is false only when a node limit was hit.
HarpagonPlan solve_exactly(const HarpagonProblem& problem, const HarpagonPlan& start);

}  // namespace leat::planner
