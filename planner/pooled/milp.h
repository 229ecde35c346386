// The pooled problem as a mixed integer program, with linear rows of the user's own, and GLPK's answer within a limit.
// GLPK runs in a child process: it aborts on misuse and may take longer than it was told. Programs that call solve_milp
// are single-threaded and link leat_milp; leatd does not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

// What a row speaks of, for one DNN: partitions or whole devices that it holds of a type; whether it holds any (0 or
// 1); its requests per second (of all types, `type` is not looked at).
struct MilpTerm {
  enum class Of : std::uint8_t { partitions, devices, used, rate };
  Of of = Of::partitions;
  std::uint32_t dnn = 0, type = 0;
  double times = 1;
};
struct MilpRow {  // least <= sum of times * variable <= most
  std::vector<MilpTerm> terms;
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
};

struct MilpRules {
  bool free = false;   // Leat's rules (solver.h), or PPipe's
  bool whole = false;  // pipelines never share a device
  double known = 0;    // z that another plan reaches: nothing below is looked for
};

struct MilpAnswer {
  bool feasible = false;  // `dnns` is a plan that keeps every row
  std::vector<PooledDnnPlan> dnns;
  double objective = 0;
  double bound = 0;                     // no plan has a larger z; infinite where the limit came before any bound
  double lp_bound = 0;                  // of the relaxation
  bool proven = false;                  // it ended by itself: `objective`, or without a plan `known`, is the optimum
  std::uint64_t columns = 0, rows = 0;  // of the program
  double seconds = 0;
  std::string problem;  // one line where the child failed; else empty
};

// Exact over the same candidates as the search. Any share combination whose sum fits is taken for one that packs, as
// the free search does.
MilpAnswer solve_milp(const PooledProblem& problem, const MilpRules& rules, std::span<const MilpRow> rows,
                      std::chrono::milliseconds limit);
using MilpSolver = std::function<MilpAnswer(const PooledProblem&, const MilpRules&, std::span<const MilpRow>)>;

// Empty, or how a plan breaks one of the rows (to 1e-6, relative).
std::string broken_row(const std::vector<PooledDnnPlan>& plan, std::span<const MilpRow> rows);

}  // namespace leat::planner
