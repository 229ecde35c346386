// From applications, a host and profiles to a plan: modules become the pooled problem's DNNs, each with a part of its
// application's SLO; partitions become its GPU types; the solution becomes routes over named partitions.
// Pure and deterministic; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/constraints.h"
#include "planner/host.h"
#include "planner/io/plan_io.h"
#include "planner/pooled/milp.h"
#include "planner/pooled/problem.h"
#include "planner/pooled/solver.h"

namespace leat::planner {

enum class Goal : std::uint8_t {
  throughput,  // the largest z with rate >= z * weight of every application (weight: its rate where rates are given)
  partitions,  // the fewest whole devices that carry the given rates
  cost,        // the least price that does
  power,       // the least watts that do (size where watts are not known)
};
enum class Rules : std::uint8_t { leat, ppipe };

struct PlanRequest {
  std::vector<Application> applications;
  Host host;
  std::vector<Profile> profiles;
  Goal goal = Goal::throughput;
  Rules rules = Rules::leat;
  double margin = 0.4;           // of every SLO, kept for waiting and for what profiles do not see (PPipe section 5)
  std::uint32_t max_stages = 2;  // PPipe's D; Leat's rules go to three
  PooledEffort effort;
  // Besides the search, for the goal of throughput: solve_milp within a limit, or empty. Both bounds stand in the
  // outcome.
  MilpSolver milp;
  // Kept by the search where they are limits of memory; anything else needs `milp`, whose plan is then the plan.
  PlanConstraints constraints;
  // Not from nothing: the sets of models that this plan holds, changed where each one to be loaded gains `per_load` of
  // what is carried (planner/shared/residency.h). Its applications and partitions are the request's, by their names.
  std::optional<PlanFile> from;
  double per_load = 0.03;
};

// What stands in the way of an SLO, or of the rates.
struct Shortfall {
  std::string application;
  double needed_ms = 0;  // fastest possible answer, margin included: the nearest feasible SLO
  double slo_ms = 0;
};

// What changing one thing would bring.
struct Marginal {
  std::string what;  // "one more V100", "SLO of traffic 10 % longer"
  double objective = 0;
};

// Another way to do the same, which promises less, or nothing that can be compared.
struct OtherPlan {
  PlanFile file;
  double z = 0;  // by Leat's model of waits; of the plan of every module everywhere the best there is
};

struct PlanOutcome {
  bool feasible = false;
  std::vector<Shortfall> slos;  // SLOs no route can meet; the plan is then empty
  double carried = 0;           // with rates given: the part of them that the host carries (>= 1: all)
  PlanFile file;                // empty when an SLO cannot be met
  PooledProblem problem;  // what was solved (its DNNs: applications in order, modules in order), for explanations;
                          // points into the request's profiles
  PooledSolution solution;
  double strict_objective = 0;     // by PPipe's own rules on the same problem
  double dedicated_objective = 0;  // by the chosen rules, every partition with one block range of its own
  // Leat's rules, throughput: both kinds of plan by one model of waits (planner/shared/waits.h); 0: not compared.
  MilpAnswer milp;          // where it was asked: its objective, bound and seconds; its plan is moved out
  double search_bound = 0;  // of the search, which knows no rows
  bool shared = false;      // the modules share partitions in time; `solution` then holds the certificate alone
  double shared_rate = 0, dedicated_rate = 0;
  std::vector<OtherPlan> others;
  std::vector<std::string> explanation;  // lines
  std::vector<Marginal> marginals;       // filled by explain()
};

// Error: one line (a model without profile, rates for some applications only, classes without profile rows).
// The outcome keeps pointers into `request`.
Result<PlanOutcome> build_plan(const PlanRequest& request);

// What one more partition of each class and a 10 % longer SLO of each application would bring.
void explain(const PlanRequest& request, PlanOutcome& outcome);

}  // namespace leat::planner
