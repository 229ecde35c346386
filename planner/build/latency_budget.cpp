#include "planner/build/latency_budget.h"

#include <algorithm>

#include "planner/dag.h"

namespace leat::planner {
namespace {

Predecessors after_of(const Application& application) {
  Predecessors after;
  for (const Module& m : application.modules) after.push_back(m.after);
  return after;
}

}  // namespace

double longest_path(const Application& application, const std::vector<double>& need) {
  // Asked in the solvers' inner loops: nothing is copied.
  const std::vector<double> end = longest_paths_to(
      [&](std::size_t m) -> const std::vector<std::uint32_t>& { return application.modules[m].after; }, need);
  return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
}

std::vector<double> split_by_need(const Application& application, const std::vector<double>& need, double usable) {
  std::vector<double> out = longest_paths_through(after_of(application), need);
  for (std::size_t m = 0; m < need.size(); ++m) out[m] = usable * need[m] / out[m];
  return out;
}

}  // namespace leat::planner
