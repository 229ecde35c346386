#include "planner/latency_budget.h"

#include <algorithm>

namespace leat::planner {
namespace {

// Longest sums up to and from each module, itself included.
struct Paths {
  std::vector<double> before, after;
};

Paths paths(const Application& a, const std::vector<double>& need) {
  Paths p{need, need};
  const std::size_t n = a.modules.size();
  for (std::size_t m = 0; m < n; ++m) {
    for (const auto b : a.modules[m].after) p.before[m] = std::max(p.before[m], p.before[b] + need[m]);
  }
  for (std::size_t m = n; m-- > 0;) {
    for (const auto b : a.modules[m].after) p.after[b] = std::max(p.after[b], p.after[m] + need[b]);
  }
  return p;
}

}  // namespace

double longest_path(const Application& application, const std::vector<double>& need) {
  const Paths p = paths(application, need);
  return p.before.empty() ? 0 : *std::max_element(p.before.begin(), p.before.end());
}

std::vector<double> split_by_need(const Application& application, const std::vector<double>& need, double usable) {
  const Paths p = paths(application, need);
  std::vector<double> out;
  for (std::size_t m = 0; m < need.size(); ++m) out.push_back(usable * need[m] / (p.before[m] + p.after[m] - need[m]));
  return out;
}

}  // namespace leat::planner
