#include "planner/build/build_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/build/constraint_rows.h"
#include "planner/build/host_types.h"
#include "planner/build/latency_budget.h"
#include "planner/build/min_cost.h"
#include "planner/build/routes.h"
#include "planner/pooled/candidates.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/solver.h"
#include "planner/shared/sharing.h"

namespace leat::planner {
namespace {

constexpr int kBudgetTrials = 48;

class Builder {
 public:
  Builder(const PlanRequest& request) : request_(request), host_(request.host) {}

  Result<PlanOutcome> build() {
    if (const std::string wrong = prepare(); !wrong.empty()) return Error{wrong};
    if (request_.from) return improve();
    const bool met = meet_slos();
    if (!unplannable_.empty()) return Error{unplannable_};
    if (!met) return std::move(out_);
    choose_budgets();
    estimate_rates();
    solve();
    out_.dedicated_objective = out_.solution.certificate.objective;
    if (out_.solution.feasible) {
      out_.file = routes_of(request_.applications, host_, types_, out_.problem, out_.solution);
      add_budgets();
    }
    if (request_.rules == Rules::leat && request_.goal == Goal::throughput && rows_.empty()) share();
    if (!out_.solution.feasible) return std::move(out_);
    out_.feasible = !rates_given_ || out_.carried >= 1 - 1e-9;
    return std::move(out_);
  }

 private:
  // Empty, or what is wrong with the request.
  std::string prepare() {
    std::map<std::string, const Profile*> by_model;
    for (const Profile& p : request_.profiles) by_model[p.model] = &p;
    std::size_t with_rate = 0;
    for (const Application& a : request_.applications) {
      with_rate += a.rate_rps > 0;
      for (const Module& m : a.modules) {
        const auto it = by_model.find(m.model);
        if (it == by_model.end())
          return "application '" + a.name + "', module '" + m.name + "': no profile of model '" + m.model +
                 "'; run leat profile, or name another model";
      }
    }
    rates_given_ = with_rate > 0;
    if (with_rate != 0 && with_rate != request_.applications.size()) {
      return "some applications state rate_rps and others do not; state it for all (to carry those rates) or for none "
             "(to find the largest)";
    }
    if (!rates_given_ && request_.goal != Goal::throughput)
      return "a goal other than throughput needs rate_rps of every application; state it";
    if (const Status limited = limit_memory(request_.constraints, host_); !limited) return limited.error();
    types_ = types_of(host_);
    auto rows = rows_of(request_.constraints, request_.applications, types_);
    if (!rows) return rows.error();
    rows_ = std::move(*rows);
    if (!rows_.empty() && !request_.milp)
      return first_place() + "the search keeps limits of memory only; add --solver glpk, or leave it out";
    if (request_.milp && request_.goal != Goal::throughput)
      return "GLPK is asked for the goal of throughput alone; leave out --solver glpk, or --goal";
    out_.problem.types = types_.types;
    out_.problem.bandwidth_gbps = host_.handover_gbps;
    out_.problem.pair_gbps = types_.pair_gbps;
    out_.problem.max_stages = request_.max_stages;
    out_.problem.budget_by_p99 = request_.rules == Rules::leat;
    for (const Application& a : request_.applications) {
      for (const Module& m : a.modules) {
        const double weight = (rates_given_ ? a.rate_rps : a.weight) * m.items_per_request;
        out_.problem.dnns.push_back({by_model[m.model], 0, weight, rates_given_ ? weight : 0});
      }
    }
    return {};
  }

  // The least latency of each module over all its routes, and whether every application can be answered in time at all.
  bool meet_slos() {
    bool all = true;
    PooledProblem open = out_.problem;
    for (PooledDnn& d : open.dnns) d.budget_us = 1e15, d.est_rps = 0;
    for (std::size_t a = 0, d = 0; a < request_.applications.size(); ++a) {
      const Application& app = request_.applications[a];
      std::vector<double> need;
      for (std::size_t m = 0; m < app.modules.size(); ++m, ++d) {
        need.push_back(min_latency_us(open, open.dnns[d]));
        if (std::isfinite(need.back())) continue;
        unplannable_ = "application '" + app.name + "', module '" + app.modules[m].name + "': model '" +
                       app.modules[m].model + "' is profiled on no class of this host (" + classes() +
                       "), or fits none of them; run leat profile there";
        return false;
      }
      const double usable = static_cast<double>(app.slo_ns) / 1000 * (1 - request_.margin);
      const double longest = longest_path(app, need);
      if (!(longest <= usable)) {
        all = false;
        out_.slos.push_back({app.name, longest / (1 - request_.margin) / 1000, static_cast<double>(app.slo_ns) / 1e6});
      }
      needs_.push_back(std::move(need));
    }
    return all;
  }

  std::string classes() const {
    std::string out;
    for (const GpuType& t : types_.types) out += (out.empty() ? "" : ", ") + t.name;
    return out;
  }

  std::vector<double> budgets_for(const std::vector<std::vector<double>>& needs) const {
    std::vector<double> out;
    for (std::size_t a = 0; a < needs.size(); ++a) {
      const double usable = static_cast<double>(request_.applications[a].slo_ns) / 1000 * (1 - request_.margin);
      const auto split = split_by_need(request_.applications[a], needs[a], usable);
      out.insert(out.end(), split.begin(), split.end());
    }
    return out;
  }

  void set_budgets(const std::vector<double>& budgets) {
    for (std::size_t d = 0; d < budgets.size(); ++d) out_.problem.dnns[d].budget_us = budgets[d];
  }

  void add_budgets() {
    for (std::size_t a = 0, d = 0; a < request_.applications.size(); ++a) {
      out_.file.plan.budget_ns.emplace_back();
      for (std::size_t m = 0; m < request_.applications[a].modules.size(); ++m, ++d) {
        out_.file.plan.budget_ns[a].push_back(static_cast<std::int64_t>(budgets_[d] * 1000 / (1 - request_.margin)));
      }
    }
  }

  // In proportion to the least latencies first; then one module's part at a time is made larger or smaller while the
  // bound rises. The bound follows the optimum closely and costs a tenth of it.
  void choose_budgets() {
    std::vector<std::vector<double>> needs = needs_;
    budgets_ = budgets_for(needs);
    set_budgets(budgets_);
    std::size_t several = 0;
    for (const auto& n : needs) several += n.size() > 1;
    if (several == 0) return;
    double best = pooled_bound(out_.problem);
    int trials = 0;
    for (const double factor : {1.6, 1.25, 1.1}) {
      for (std::size_t a = 0; a < needs.size(); ++a) {
        for (std::size_t m = 0; m < needs[a].size() && needs[a].size() > 1; ++m) {
          for (const double f : {factor, 1 / factor}) {
            if (++trials > kBudgetTrials) return;
            auto tried = needs;
            tried[a][m] *= f;
            const auto budgets = budgets_for(tried);
            set_budgets(budgets);
            const double bound = pooled_bound(out_.problem);
            if (bound > best * (1 + 1e-9)) best = bound, needs = tried, budgets_ = budgets;
          }
        }
      }
    }
    set_budgets(budgets_);
  }

  // Batches wait for their items: without rates, each module's rate is what whole models on whole partitions reach
  // (PPipe).
  void estimate_rates() {
    if (rates_given_) return;
    set_budgets(budgets_);
    const PooledSolution whole = solve_whole_models(out_.problem);
    for (std::size_t d = 0; d < out_.problem.dnns.size(); ++d) {
      out_.problem.dnns[d].est_rps = whole.feasible ? whole.dnns[d].rps : 0;
    }
  }

  void solve() {
    set_budgets(budgets_);
    const auto best = [&](const PooledProblem& p) {
      return request_.rules == Rules::leat ? solve_free(p, request_.effort) : solve_pooled(p, request_.effort);
    };
    const PooledSolution strict = solve_pooled(out_.problem, request_.effort);
    out_.strict_objective = strict.certificate.objective;
    out_.solution = request_.rules == Rules::leat ? best(out_.problem) : strict;
    out_.search_bound = out_.solution.certificate.upper_bound;
    if (request_.milp) ask_milp();
    out_.carried = rates_given_ ? out_.solution.certificate.objective : 0;
    if (request_.goal == Goal::throughput || out_.carried < 1 - 1e-9) return;
    std::vector<double> cost;
    for (std::size_t t = 0; t < types_.types.size(); ++t) {
      const Partition& p = host_.partitions[types_.members[t][0]].partition;
      cost.push_back(request_.goal == Goal::partitions ? 1
                     : request_.goal == Goal::cost     ? p.price
                     : p.watts > 0                     ? p.watts
                                                       : p.size);
    }
    MinCost min = find_min_cost(out_.problem, cost, best);
    if (!min.found) return;
    out_.solution = std::move(min.solution);
    Certificate& c = out_.solution.certificate;
    c.objective = min.cost;
    c.upper_bound = min.bound;
    c.gap = min.cost > 0 ? (min.cost - min.bound) / min.cost : 0;
    c.method = "least count vector that carries the rates, " + c.method;
    c.binding = "the stated rates; " + c.binding;
  }

  // With rows GLPK's plan is the plan; without, the better of the two. The lower bound of both holds for either.
  void ask_milp() {
    Certificate& c = out_.solution.certificate;
    const bool bound_by_rows = !rows_.empty();
    const MilpRules rules{.free = request_.rules == Rules::leat, .known = bound_by_rows ? 0 : c.objective};
    out_.milp = request_.milp(out_.problem, rules, rows_);
    MilpAnswer& milp = out_.milp;
    const bool better = milp.feasible && (bound_by_rows || milp.objective > c.objective) && packs(milp.dnns);
    const double bound = std::min(c.upper_bound, milp.bound);
    if (better) {
      out_.solution.dnns = std::move(milp.dnns);
      c.objective = milp.objective;
      c.method = "GLPK, within its limit";
    } else if (bound_by_rows) {
      out_.solution.feasible = false;
      out_.solution.dnns.clear();
      c.objective = 0;
      c.binding = !milp.problem.empty() ? milp.problem
                  : milp.proven         ? "no plan keeps the constraints; loosen one"
                                : "GLPK found no plan that keeps the constraints within its limit; raise --limit";
    }
    c.upper_bound = std::max(bound, c.objective);
    c.gap = c.upper_bound > 0 ? (c.upper_bound - c.objective) / c.upper_bound : 0;
  }

  // By Leat's rules shares below 1/4 can fit in sum and not one by one.
  bool packs(const std::vector<PooledDnnPlan>& plan) const {
    PooledProblem freer = out_.problem;
    const std::string wrong = request_.rules == Rules::leat ? problem_of_free(freer, plan, {}) : std::string();
    return wrong.empty();
  }

  std::string first_place() const {
    const PlanConstraints& c = request_.constraints;
    return c.apart.empty() ? c.rows.front().place : c.apart.front().place;
  }

  Result<PlanOutcome> improve() {
    const Resources on{request_.applications, weights(), own_profiles(), host_, types_};
    auto plan = improve_sharing(on, *request_.from, request_.per_load);
    if (!plan.ok()) return Error{plan.error()};
    const double z = plan->certificate.objective;
    take(std::move(*plan), z);
    out_.feasible = true;  // as much as there is; the rates may be more
    return std::move(out_);
  }

  std::vector<double> weights() const {
    std::vector<double> out;
    for (const Application& a : request_.applications) out.push_back(rates_given_ ? a.rate_rps : a.weight);
    return out;
  }
  // [application][module]
  std::vector<std::vector<const Profile*>> own_profiles() const {
    std::vector<std::vector<const Profile*>> out;
    std::size_t d = 0;
    for (const Application& a : request_.applications) {
      out.emplace_back();
      for (std::size_t m = 0; m < a.modules.size(); ++m) out.back().push_back(out_.problem.dnns[d++].profile);
    }
    return out;
  }

  // Where the modules in turns on all partitions carry more than each on its own, that is the plan.
  void share() {
    const Resources on{request_.applications, weights(), own_profiles(), host_, types_};
    Sharing sharing = consider_sharing(on, out_.solution.feasible ? &out_.file.plan : nullptr);
    out_.shared_rate = sharing.shared_rate;
    out_.dedicated_rate = sharing.dedicated_rate;
    const auto other = [&](Plan plan, double z) {
      OtherPlan& o = out_.others.emplace_back();
      o.file.applications = request_.applications;
      o.file.plan = std::move(plan);
      o.z = z;
    };
    if (const double z = sharing.unplanned.certificate.objective; z > 0) {
      if (sharing.better || out_.solution.feasible)
        other(std::move(sharing.unplanned), z);
      else
        return take(std::move(sharing.unplanned), z);  // better than none
    }
    if (!sharing.better && sharing.shared_rate > 0 && out_.solution.feasible)
      other(std::move(sharing.plan), sharing.shared_rate);
    if (!sharing.better) return;
    if (out_.solution.feasible) out_.others.push_back({std::move(out_.file), out_.solution.certificate.objective});
    take(std::move(sharing.plan), sharing.shared_rate);
  }

  // A plan of partitions shared in time.
  void take(Plan plan, double z) {
    out_.shared = true;
    out_.solution = {};
    out_.solution.feasible = true;
    out_.solution.certificate = plan.certificate;
    out_.carried = rates_given_ ? z : 0;
    out_.file = {};
    out_.file.applications = request_.applications;
    out_.file.plan = std::move(plan);
  }

  const PlanRequest& request_;
  Host host_;  // the request's, its memory within the constraints
  std::vector<MilpRow> rows_;
  PlanOutcome out_;
  HostTypes types_;
  bool rates_given_ = false;
  std::string unplannable_;
  std::vector<std::vector<double>> needs_;  // [application][module], microseconds
  std::vector<double> budgets_;             // [dnn]
};

}  // namespace

Result<PlanOutcome> build_plan(const PlanRequest& request) { return Builder(request).build(); }

// Solved anew with one thing changed; a shared plan by its own model, since the two kinds' rates are not comparable.
void explain(const PlanRequest& request, PlanOutcome& outcome) {
  const bool rates = !request.applications.empty() && request.applications[0].rate_rps > 0;
  const auto objective = [&](const PooledProblem& p) {
    return (request.rules == Rules::leat ? solve_free(p, request.effort) : solve_pooled(p, request.effort))
        .certificate.objective;
  };
  const auto planned_anew = [](const PlanRequest& changed) {
    const auto anew = build_plan(changed);
    return anew.ok() ? std::max(anew->shared_rate, anew->dedicated_rate) : 0.0;
  };
  outcome.marginals.push_back({rates ? "as planned: the rates times" : "as planned: the weights times",
                               outcome.shared ? outcome.shared_rate : objective(outcome.problem)});
  for (std::size_t t = 0; t < outcome.problem.types.size(); ++t) {
    const std::string what = "one more " + outcome.problem.types[t].name;
    if (outcome.shared) {
      PlanRequest more = request;
      HostPartition extra = request.host.partitions[types_of(request.host).members[t].front()];
      extra.partition.name += "+1";
      more.host.partitions.push_back(std::move(extra));
      outcome.marginals.push_back({what, planned_anew(more)});
      continue;
    }
    PooledProblem more = outcome.problem;
    ++more.types[t].count;
    outcome.marginals.push_back({what, objective(more)});
  }
  for (std::size_t a = 0, d = 0; a < request.applications.size(); ++a) {
    const std::string what = "SLO of " + request.applications[a].name + " 10 % longer";
    if (outcome.shared) {
      PlanRequest longer = request;
      longer.applications[a].slo_ns += longer.applications[a].slo_ns / 10;
      outcome.marginals.push_back({what, planned_anew(longer)});
      continue;
    }
    PooledProblem longer = outcome.problem;
    for (std::size_t m = 0; m < request.applications[a].modules.size(); ++m, ++d) longer.dnns[d].budget_us *= 1.1;
    outcome.marginals.push_back({what, objective(longer)});
  }
}

}  // namespace leat::planner
