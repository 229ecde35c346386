// Harpagon: the cheapest machines that serve an application's DAG of modules within one latency objective.
// Plain data and the pure functions on one module; splitting.h divides the objective over modules, greedy.h
// puts both together. Shapes: one Configuration per (batch, hardware) of a module, ordered by throughput-cost ratio.
// Times are seconds and rates requests per second, as in the paper's formulas. Any thread; no errors: infeasible is a
// value.
//
// Machine model (Harpagon section III-B, III-C): a machine of configuration (b, d) completes t = b/d requests per
// second. Machines are ordered by ratio t/price; all run at full capacity, except that the last one may run at f < t.
// Cost is the sum of price * f / t ("frame-rate proportionality"), so that a partial machine costs its part.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace leat::planner {

inline constexpr double kNoPlan = std::numeric_limits<double>::infinity();
inline constexpr double kRelative = 1e-9;  // rates, costs and latencies within this are equal

struct Configuration {
  std::uint32_t batch = 1;
  double duration_s = 0;       // one batch on one machine
  double price = 1;            // of one machine, any unit
  std::uint32_t hardware = 0;  // index of the caller's own; equal index, equal price
  double throughput_rps() const { return batch / duration_s; }
  double cost_per_request() const { return price * duration_s / batch; }
};

struct HarpagonModule {
  std::string name;
  double rate_rps = 0;
  std::vector<Configuration> configurations;  // order_by_ratio() puts them in order
  std::vector<std::uint32_t> after;           // predecessors, smaller indexes
};

struct HarpagonProblem {
  std::string name;
  double slo_s = 0;
  std::vector<HarpagonModule> modules;
};

// [module]: those before it.
std::vector<std::vector<std::uint32_t>> predecessors(const HarpagonProblem& problem);

// Descending throughput-cost ratio; among equals the shorter batch first. Every function below expects this order.
void order_by_ratio(std::vector<Configuration>& configurations);

// How requests reach machines, which decides the worst case of a full machine (Theorem 1; section II, Table III).
enum class Dispatch : std::uint8_t {
  throughput_cost,  // whole batches in ratio order: d + b/w, w = the rate of this machine and all after it
  round_robin,      // single requests in turn: each collects at its own rate, 2d
  per_tuple,        // whole batches, but each configuration's machines collect from their own share only: d + b/(n t)
};

// Worst case of one tuple when `remaining_rps` is not yet served: of floor(remaining / t) full machines, or, below one
// machine, of a partial one, which collects at the rate it gets: d + b/remaining.
double worst_case_latency_s(Dispatch dispatch, const Configuration& c, double remaining_rps);

// `machines` of one configuration: full ones and, in the last tuple only, a fraction.
struct Tuple {
  Configuration configuration;
  double machines = 0;
  double rate_rps() const { return machines * configuration.throughput_rps(); }
};

struct ModuleSchedule {
  std::vector<Tuple> tuples;  // in ratio order
  double cost = kNoPlan;
  double latency_s = 0;  // worst case over all machines
  double dummy_rps = 0;  // rate of generated requests, part of the tuples' rates
  bool feasible() const { return cost < kNoPlan; }
};

// Fills cost and latency of a schedule from its tuples (Theorem 1).
void evaluate(Dispatch dispatch, ModuleSchedule& schedule);

struct ModuleOptions {
  Dispatch dispatch = Dispatch::throughput_cost;
  std::uint32_t tuples = 0;  // at most so many configurations; 0: any
  bool dummies = true;       // may add requests to fill a machine
};

// Algorithm 1 with the tuple limit, then the dummy generator. Where no configuration can take what is left (a rate so
// low that no batch fills in time), whole machines take it, padded: with `dummies` off as well, since every real system
// pads a batch rather than hold it; only the choice to pad although there is another way is the option.
ModuleSchedule schedule_module(std::span<const Configuration> configurations, double rate_rps, double budget_s,
                               const ModuleOptions& options);

// Latency reassigner: keeps the first tuple's full machines and schedules the rest again within a larger budget.
// Returns the cheaper of the old and the new schedule.
ModuleSchedule reassign_residual(std::span<const Configuration> configurations, const ModuleSchedule& schedule,
                                 double rate_rps, double budget_s, const ModuleOptions& options);

}  // namespace leat::planner
