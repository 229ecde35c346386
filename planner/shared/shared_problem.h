// Applications whose modules share every partition of a class in time, and the rates that such a plan can promise.
//
// Maximise z, every application at rate z times its weight. A route of an application fixes a cohort B and, module by
// module, a class and a batch; its latency by waits.h is within the SLO. For the rates x of routes
//   sum over routes of x * (partition time a request takes on class c) <= U n_c   for every class c
//   sum over the routes of application a of x >= z w_a
// U, the utilisation that is planned for, and R, the longest run that a class admits, are decisions: waits fall with
// both. Pure and deterministic; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/application.h"
namespace leat::planner {

struct SharedModule {
  double items = 1;                          // sub-requests a request makes here
  std::vector<std::vector<double>> run_us;   // [class][b-1], p50: what work counts; empty: not on this class
  std::vector<std::vector<double>> slow_us;  // the same, p99: what latency counts
};

struct SharedApplication {
  double slo_us = 0, weight = 1;
  std::vector<SharedModule> modules;  // in topological order; of a DAG too they are charged one after the other: safe
};

struct SharedProblem {
  std::vector<double> count;  // [class]: partitions
  std::vector<SharedApplication> applications;
};

// What one application uses of a class for one module, as the routes chosen give it.
struct SharedUse {
  std::uint32_t application = 0, module = 0, of_class = 0;
  std::uint32_t batch = 1;  // largest of its routes
  double rate_rps = 0;      // requests of the application per second that go this way
};

struct SharedSolution {
  bool feasible = false;
  double z = 0;
  double bound = 0;        // no shared plan of one pool a class has a larger z: the work alone, U = 1, no waits
  double utilisation = 0;  // planned for
  std::vector<double> longest_run_us;  // [class]
  std::vector<SharedUse> uses;
};

SharedSolution solve_shared(const SharedProblem& problem);

// Pools that a plan already has (dedicated ones, block ranges), judged by the same model: the largest z at which every
// application is in time. A stage of a route of module m of application a.
struct PooledUse {
  std::uint32_t application = 0, module = 0, route = 0;  // route: numbers the plan's routes
  double share = 1;                                      // of the module's rate that this route carries
  double items = 1;                                      // of one request at this module
  std::uint32_t pool = 0, batch = 1;
  std::vector<double> run_us, slow_us;  // [b-1]: p50, p99
  double transfer_us = 0;               // of one batch, behind this stage
};
double promised(const SharedProblem& problem, const std::vector<Application>& applications,
                const std::vector<double>& pool_size, const std::vector<PooledUse>& uses);

}  // namespace leat::planner
