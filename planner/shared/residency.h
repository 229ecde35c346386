// Which models each partition holds, where memory does not hold them all.
//
// Sets S_p of modules with sum of bytes <= M_p and flows x_mp >= 0 only for m in S_p; maximise z with
//   sum over p of x_mp = z weight_m     sum over m in S_p of x_mp cost_mp <= 1     every m held somewhere
// and, at equal z, the mean over applications of the z there would be if that one asked for twice as much. For given
// sets this is a small linear program; the sets are found by exchanging one model of one partition at a time, from a
// start in which they are dealt in turn, until no exchange helps. Pure and deterministic; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

struct ResidencyProblem {
  std::vector<double> memory_bytes;         // [partition]; 0: no limit
  std::vector<std::uint32_t> kind;          // [partition]: those of one kind are the same
  std::vector<double> module_bytes;         // [module]
  std::vector<std::uint32_t> application;   // [module]: whose it is
  std::vector<double> weight;               // [module]: items a second at z = 1, > 0
  std::vector<std::vector<double>> cost_s;  // [partition][module]: seconds of an item; 0: does not run there
};

struct Residency {
  bool feasible = false;                  // every module is held somewhere
  std::vector<std::vector<bool>> holds;   // [partition][module]
  std::vector<std::vector<double>> rate;  // [partition][module]: items a second at z
  double z = 0;
  double bound = 0;  // z of all modules on all partitions that each alone would fit
};

Residency choose_residency(const ResidencyProblem& problem);

// From sets that are in force to better ones: the exchange of one model of one partition that gains most z, again and
// again. Each model that has to be loaded must gain `per_load` of the z that there was; a partition that alone holds a
// model stays as it is, since it is out while it changes.
Residency improve_residency(const ResidencyProblem& problem, const std::vector<std::vector<bool>>& held,
                            double per_load);

// Rates and z for given sets.
Residency flows(const ResidencyProblem& problem, std::vector<std::vector<bool>> holds);

}  // namespace leat::planner
