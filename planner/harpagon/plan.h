// Harpagon's problem from an application and its profiles, and its result as a plan of routes: a module's tuple is a
// route of one stage whose pool is the tuple's machines. Any thread. Errors: one line.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/harpagon/exact.h"
#include "planner/io/plan_io.h"
#include "planner/profile.h"

namespace leat::planner {

// A kind of machine that may be rented: a profile's (class, share) and its price per second. Its index is the hardware
// index.
struct PricedClass {
  std::string partition_class;
  std::uint32_t share = 1;
  double price = 1;
};

// Every measured batch on every priced class is a configuration; durations are 99th percentiles. Refused: an
// application without a rate, a model without a profile, a module no priced class can run.
Result<HarpagonProblem> harpagon_problem(const Application& application, const std::vector<Profile>& profiles,
                                         const std::vector<PricedClass>& classes);

// Partitions are of kind `emulated`, one a machine (the last of a tuple may be partly used); budgets are the modules'
// worst cases. Batches between two configurations of a class are interpolated. Precondition: plan.feasible().
PlanFile harpagon_plan_file(const Application& application, const HarpagonProblem& problem, const HarpagonPlan& plan,
                            const std::vector<PricedClass>& classes);

// The application that a problem stands for: what the simulator needs beside the plan. rate_rps: of its entry.
Application application_of(const HarpagonProblem& problem);

}  // namespace leat::planner
