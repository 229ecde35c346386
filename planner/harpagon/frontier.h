// Pareto frontiers of (latency, cost): the one currency in which modules are scheduled and latency is split exactly.
// A frontier is sorted by rising latency and strictly falling cost; a point carries the choice that made it.
// Units: whatever the caller uses, the same everywhere. Any thread: values.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

struct FrontierPoint {
  double latency_s = 0, cost = 0;
  std::uint32_t choice = 0;  // of the caller
};

class Frontier {
 public:
  // True when a point stands that is at most as late and at most as costly (within kRelative).
  bool dominates(double latency_s, double cost) const;
  // Adds a point and removes those it dominates; false when it is dominated itself.
  bool add(double latency_s, double cost, std::uint32_t choice);
  const std::vector<FrontierPoint>& points() const { return points_; }
  // For builders that hand over points already sorted, latency rising and cost strictly falling.
  static Frontier from_sorted(std::vector<FrontierPoint> points);

 private:
  std::vector<FrontierPoint> points_;
};

// One alternative of each node so that no path of the DAG is later than `slo_s`, at the least total cost: exact.
// Series-parallel parts are reduced by merging frontiers; what is left, if anything, is searched with bounds.
// after[i]: predecessors of node i, smaller indexes. Returns the point index of each node; empty: infeasible.
// Combinations that cost more than `cost_cap` need not be found.
std::vector<std::uint32_t> cheapest_combination(const std::vector<Frontier>& nodes,
                                                const std::vector<std::vector<std::uint32_t>>& after, double slo_s,
                                                double cost_cap);

}  // namespace leat::planner
