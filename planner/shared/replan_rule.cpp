#include "planner/shared/replan_rule.h"

#include <algorithm>

namespace leat::planner {

bool memory_binds(const ResidencyProblem& problem) {
  for (std::size_t p = 0; p < problem.memory_bytes.size(); ++p) {
    double bytes = 0;
    for (std::size_t m = 0; m < problem.module_bytes.size(); ++m)
      if (problem.cost_s[p][m] > 0) bytes += problem.module_bytes[m];
    if (problem.memory_bytes[p] > 0 && bytes > problem.memory_bytes[p]) return true;
  }
  return false;
}

void set_weights(ResidencyProblem& problem, const std::vector<double>& requests_per_s, const std::vector<double>& items,
                 const ReplanRule& rule) {
  const std::size_t modules = items.size(), partitions = problem.cost_s.size();
  // Seconds of a partition that a request takes, by its quickest partitions.
  std::vector<double> work(requests_per_s.size(), 0);
  for (std::size_t m = 0; m < modules; ++m) {
    double least = 0;
    for (std::size_t p = 0; p < partitions; ++p)
      if (const double c = problem.cost_s[p][m]; c > 0 && (least == 0 || c < least)) least = c;
    work[problem.application[m]] += items[m] * least;
  }
  problem.weight.assign(modules, 0);
  for (std::size_t m = 0; m < modules; ++m) {
    const std::uint32_t a = problem.application[m];
    const double floor = work[a] > 0 ? rule.least_work * static_cast<double>(partitions) / work[a] : 1;
    problem.weight[m] = std::max(requests_per_s[a], floor) * items[m];
  }
}

double carried(const ResidencyProblem& problem, const std::vector<std::vector<bool>>& held, const ReplanRule& rule) {
  return rule.busy * flows(problem, held).z;
}

}  // namespace leat::planner
