// The rate that given pools can promise by the same model as shared plans.
#include <algorithm>
#include <cmath>

#include "planner/build/latency_budget.h"
#include "planner/shared/shared_problem.h"
#include "planner/shared/waits.h"

namespace leat::planner {
namespace {

class Judge {
 public:
  Judge(const SharedProblem& p, const std::vector<Application>& applications, const std::vector<double>& pools,
        const std::vector<PooledUse>& uses)
      : p_(p), applications_(applications), pools_(pools), uses_(uses), longest_(pools.size(), 0) {
    for (const PooledUse& u : uses) longest_[u.pool] = std::max(longest_[u.pool], u.run_us[u.batch - 1]);
  }

  // In time at z? Cohorts are chosen application by application; pools by the load that full batches make.
  bool holds(double z) const {
    std::vector<double> load(pools_.size(), 0);
    for (const PooledUse& u : uses_) {
      const double x = z * p_.applications[u.application].weight * u.share * u.items;
      load[u.pool] += x * u.run_us[u.batch - 1] / u.batch / 1e6 / pools_[u.pool];
    }
    for (const double l : load)
      if (l >= .985) return false;
    for (std::uint32_t a = 0; a < applications_.size(); ++a)
      if (!in_time(a, z, load)) return false;
    return true;
  }

 private:
  bool in_time(std::uint32_t a, double z, const std::vector<double>& load) const {
    const double x = z * p_.applications[a].weight;
    double busiest = 0;
    for (const PooledUse& u : uses_)
      if (u.application == a) busiest = std::max(busiest, load[u.pool]);
    for (const std::uint32_t cohort : kCohorts) {
      // Batches that the load was counted with must be able to form.
      std::vector<double> need(applications_[a].modules.size(), 0);
      bool forms = true;
      for (std::uint32_t m = 0; m < need.size() && forms; ++m) {
        std::uint32_t route = UINT32_MAX;
        double sum = 0;
        for (const PooledUse& u : uses_) {
          if (u.application != a || u.module != m) continue;
          if (u.route != route) sum = 0, route = u.route;
          forms = forms && (u.batch == 1 || u.batch <= u.items * cohort + 1e-9);
          sum += stage_us(u.slow_us[u.batch - 1], u.items * cohort, u.batch, longest_[u.pool], pools_[u.pool]) +
                 u.transfer_us;
          need[m] = std::max(need[m], sum);
        }
      }
      if (!forms) continue;
      const double entry = entry_wait_us(cohort, busiest, x, static_cast<std::uint32_t>(p_.count.size()));
      if (entry + longest_path(applications_[a], need) <= p_.applications[a].slo_us) return true;
    }
    return false;
  }

  const SharedProblem& p_;
  const std::vector<Application>& applications_;
  const std::vector<double>& pools_;
  const std::vector<PooledUse>& uses_;
  std::vector<double> longest_;
};

}  // namespace

double promised(const SharedProblem& problem, const std::vector<Application>& applications,
                const std::vector<double>& pool_size, const std::vector<PooledUse>& uses) {
  const Judge judge(problem, applications, pool_size, uses);
  double high = 0;  // where the first pool is full
  {
    std::vector<double> work(pool_size.size(), 0);
    for (const PooledUse& u : uses)
      work[u.pool] +=
          problem.applications[u.application].weight * u.share * u.items * u.run_us[u.batch - 1] / u.batch / 1e6;
    double max = 0;
    for (std::size_t p = 0; p < work.size(); ++p) max = std::max(max, work[p] / pool_size[p]);
    if (!(max > 0)) return 0;
    high = 1 / max;
  }
  // Slow rates can fail where cohorts take long to form, so it is not monotone: the highest that holds on a grid, then
  // between it and the next.
  constexpr int kGrid = 200;
  for (int i = kGrid; i > 0; --i) {
    double low = high * i / kGrid, above = high * (i + 1) / kGrid;
    if (!judge.holds(low)) continue;
    for (int k = 0; k < 20; ++k) {
      const double middle = (low + above) / 2;
      (judge.holds(middle) ? low : above) = middle;
    }
    return low;
  }
  return 0;
}

}  // namespace leat::planner
