// Column generation: routes of whole applications, priced by the duals of a linear program of classes and applications.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "planner/shared/shared_problem.h"
#include "planner/shared/waits.h"
#include "planner/small_lp.h"

namespace leat::planner {
namespace {

constexpr double kUtilisations[] = {.5, .6, .7, .78, .85, .9, .94, .97, .985};
constexpr double kRunLadder[] = {1, .7, .5, .35, .25, .18, .12, .08, .05};
constexpr int kMaxColumns = 400, kMaxFixedPoints = 30;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Step {
  std::uint32_t of_class = 0, batch = 1;
};
struct Column {
  std::uint32_t application = 0;
  std::vector<Step> steps;   // [module]
  std::vector<double> work;  // [class]: partition microseconds a request
};

// What a class and a cohort allow of one module: the least work for each latency.
struct Choice {
  std::uint32_t of_class = 0, batch = 1;
  double latency_us = 0, work_us = 0;
};

class Search {
 public:
  explicit Search(const SharedProblem& p) : p_(p), classes_(static_cast<std::uint32_t>(p.count.size())) {
    for (std::uint32_t c = 0; c < classes_; ++c) {
      double longest = 0;
      for (const auto& a : p.applications)
        for (const auto& m : a.modules)
          for (const double d : m.run_us[c]) longest = std::max(longest, d);
      longest_.push_back(longest);
    }
  }

  SharedSolution run() {
    SharedSolution best;
    best.bound = work_bound();
    if (!(best.bound > 0)) return best;
    for (const double u : kUtilisations) {
      double before = 0;
      int falling = 0;
      for (const double f : kRunLadder) {
        std::vector<double> limit = longest_;
        for (double& r : limit) r *= f;
        const double z = solve(u, limit, std::min(best.bound, work_bound()), best);
        falling = z < before ? falling + 1 : 0;
        before = z;
        if (falling == 3) break;  // shorter runs only cost batches from here on
      }
    }
    return best;
  }

 private:
  // The largest fixed point of z = LP(z), from above; keeps the best. R shrinks to the longest run used, which only
  // shortens waits, so it is solved once more then.
  double solve(double u, std::vector<double> limit, double from, SharedSolution& best) {
    double reached = 0;
    for (int shortened = 0; shortened < 3; ++shortened) {
      double z = from;
      bool found = false;
      for (int i = 0; i < kMaxFixedPoints && z > best.z * .5 && z > 0; ++i) {
        const double next = linear_program(u, limit, z);
        found = next >= z * (1 - 1e-4);
        z = std::min(z, next);
        if (found) break;
      }
      if (!found || !(z > 0)) return reached;
      reached = std::max(reached, z);
      if (z > best.z) keep(u, limit, z, best);
      std::vector<double> used(classes_, 0);
      for (std::size_t k = 0; k < columns_.size(); ++k)
        for (std::size_t m = 0; rate_[k] > 1e-9 && m < columns_[k].steps.size(); ++m) {
          const Step& s = columns_[k].steps[m];
          used[s.of_class] = std::max(
              used[s.of_class], p_.applications[columns_[k].application].modules[m].run_us[s.of_class][s.batch - 1]);
        }
      bool shorter = false;
      for (std::uint32_t c = 0; c < classes_; ++c) {
        if (used[c] > 0 && used[c] < limit[c] * (1 - 1e-9)) limit[c] = used[c], shorter = true;
      }
      if (!shorter) return reached;
    }
    return reached;
  }

  void keep(double u, const std::vector<double>& limit, double z, SharedSolution& best) const {
    best.feasible = true;
    best.z = z;
    best.utilisation = u;
    best.longest_run_us = limit;
    best.uses.clear();
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, SharedUse> uses;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      if (rate_[k] <= 1e-9) continue;
      for (std::uint32_t m = 0; m < columns_[k].steps.size(); ++m) {
        const Step& s = columns_[k].steps[m];
        SharedUse& use = uses[{columns_[k].application, m, s.of_class}];
        use.application = columns_[k].application, use.module = m, use.of_class = s.of_class;
        use.batch = std::max(use.batch, s.batch);
        use.rate_rps += rate_[k];
      }
    }
    for (const auto& [key, use] : uses) best.uses.push_back(use);
  }

  double work_bound() {
    waits_ = false;
    const double z = linear_program(1, longest_, 1);
    waits_ = true;
    return z;
  }

  // Of module m of application a with a cohort of B: per class and batch what is neither slower nor dearer than
  // another.
  std::vector<Choice> choices(const SharedApplication& app, const SharedModule& m, std::uint32_t cohort,
                              const std::vector<double>& limit) const {
    std::vector<Choice> out;
    const double items = m.items * cohort;
    for (std::uint32_t c = 0; c < classes_; ++c) {
      for (std::uint32_t b = 1; b <= m.run_us[c].size(); ++b) {
        if (b > 1 && b > items + 1e-9) break;
        const double run = m.run_us[c][b - 1];
        if (run > limit[c] * (1 + 1e-12)) continue;
        const double slow = m.slow_us[c][b - 1];
        const double latency = waits_ ? stage_us(slow, items, b, limit[c], p_.count[c]) : slow;
        if (latency <= app.slo_us) out.push_back({c, b, latency, m.items * run / b});
      }
    }
    return out;
  }

  // The route of application a with the least priced work that is in time at rate x; false: none is.
  bool cheapest(std::uint32_t a, double u, const std::vector<double>& limit, double x, const std::vector<double>& price,
                Column& out, double& cost) const {
    struct Label {
      double latency = 0, cost = 0;
      std::uint32_t before = 0;
      Step step;
    };
    const SharedApplication& app = p_.applications[a];
    bool any = false;
    cost = kInfinity;
    for (const std::uint32_t cohort : kCohorts) {
      const double entry = waits_ ? entry_wait_us(cohort, u, x, classes_) : 0;
      if (entry >= app.slo_us) {
        if (1e6 * (cohort - 1) / x >= app.slo_us) break;
        continue;
      }
      std::vector<std::vector<Label>> layers{{Label{entry, 0, 0, {}}}};
      for (const SharedModule& m : app.modules) {
        const std::vector<Choice> options = choices(app, m, cohort, limit);
        std::vector<Label> next;
        for (std::uint32_t l = 0; l < layers.back().size(); ++l) {
          const Label& from = layers.back()[l];
          for (const Choice& o : options)
            if (from.latency + o.latency_us <= app.slo_us)
              next.push_back(
                  {from.latency + o.latency_us, from.cost + o.work_us * price[o.of_class], l, {o.of_class, o.batch}});
        }
        std::sort(next.begin(), next.end(), [](const Label& x1, const Label& x2) {
          return std::tie(x1.latency, x1.cost) < std::tie(x2.latency, x2.cost);
        });
        std::vector<Label> kept;
        for (const Label& l : next)
          if (kept.empty() || l.cost < kept.back().cost * (1 - 1e-9)) kept.push_back(l);
        layers.push_back(std::move(kept));
        if (layers.back().empty()) break;
      }
      if (layers.size() != app.modules.size() + 1 || layers.back().empty()) continue;
      any = true;
      if (layers.back().back().cost >= cost * (1 - 1e-12)) continue;
      cost = layers.back().back().cost;
      out.application = a;
      out.steps.assign(app.modules.size(), {});
      out.work.assign(classes_, 0);
      std::uint32_t at = static_cast<std::uint32_t>(layers.back().size() - 1);
      for (std::size_t m = app.modules.size(); m-- > 0;) {
        const Label& l = layers[m + 1][at];
        out.steps[m] = l.step;
        out.work[l.step.of_class] +=
            app.modules[m].items * app.modules[m].run_us[l.step.of_class][l.step.batch - 1] / l.step.batch;
        at = l.before;
      }
    }
    return any;
  }

  // The largest z' that routes in time at the rates z w carry; 0: an application has none. Leaves columns_ and rate_.
  double linear_program(double u, const std::vector<double>& limit, double z) {
    const auto apps = static_cast<std::uint32_t>(p_.applications.size());
    columns_.clear();
    std::vector<double> price(classes_);
    for (std::uint32_t c = 0; c < classes_; ++c) price[c] = 1 / (u * 1e6 * p_.count[c]);
    std::vector<double> worth(apps, kInfinity);
    double value = 0;
    for (int round = 0; round < kMaxColumns; ++round) {
      bool better = false;
      for (std::uint32_t a = 0; a < apps; ++a) {
        Column column;
        double cost = 0;
        if (!cheapest(a, u, limit, z * p_.applications[a].weight, price, column, cost)) return 0;
        if (cost >= worth[a] * (1 - 1e-7)) continue;
        columns_.push_back(std::move(column));
        better = true;
      }
      if (!better) break;
      value = master(u, price, worth);
    }
    return value;
  }

  // Variables: z, then the rates of columns_. Rows: classes (work), then applications (z w_a - rates <= 0).
  double master(double u, std::vector<double>& price, std::vector<double>& worth) {
    const auto apps = static_cast<std::uint32_t>(p_.applications.size());
    const auto columns = static_cast<std::uint32_t>(columns_.size() + 1);
    SmallLp lp = SmallLp::empty(classes_ + apps, columns);
    for (std::uint32_t c = 0; c < classes_; ++c) lp.right[c] = 1;
    for (std::uint32_t a = 0; a < apps; ++a) lp.at(classes_ + a, 0) = p_.applications[a].weight;
    for (std::uint32_t k = 0; k < columns_.size(); ++k) {
      for (std::uint32_t c = 0; c < classes_; ++c) lp.at(c, k + 1) = columns_[k].work[c] / (u * 1e6 * p_.count[c]);
      lp.at(classes_ + columns_[k].application, k + 1) = -1;
    }
    std::vector<double> objective(columns, 0);
    objective[0] = 1;
    lp.set_objective(objective);
    lp.maximize();
    rate_.assign(columns_.size(), 0);
    for (std::uint32_t r = 0; r < lp.rows; ++r)
      if (lp.basic[r] > 0 && lp.basic[r] < columns) rate_[lp.basic[r] - 1] = lp.right[r];
    std::vector<double> dual(classes_ + apps, 0);
    for (std::uint32_t j = 0; j < lp.columns; ++j)
      if (lp.other[j] >= columns) dual[lp.other[j] - columns] = std::max(0.0, -lp.gain[j]);
    for (std::uint32_t c = 0; c < classes_; ++c) price[c] = dual[c] / (u * 1e6 * p_.count[c]);
    for (std::uint32_t a = 0; a < apps; ++a) worth[a] = dual[classes_ + a];
    return lp.value;
  }

  const SharedProblem& p_;
  const std::uint32_t classes_;
  std::vector<double> longest_;
  bool waits_ = true;
  std::vector<Column> columns_;
  std::vector<double> rate_;
};

}  // namespace

SharedSolution solve_shared(const SharedProblem& problem) { return Search(problem).run(); }

}  // namespace leat::planner
