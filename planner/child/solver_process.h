// Runs leat-plan (or any command) as a child, under a time limit, so that a solver that hangs, aborts or eats memory is
// a failed plan and never a failed daemon. Any thread; blocks the caller for the limit at most. Linux.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::planner {

struct SolverRun {
  enum class End : std::uint8_t {
    done,         // exit status 0: `output` is the plan
    infeasible,   // 1: `output` says which SLO or rate, and the nearest feasible one
    refused,      // any other status: `message` is its line
    crashed,      // ended by a signal (GLPK aborts on misuse): `message` names it and its last line
    too_long,     // killed at the limit
    not_started,  // `message` says why
  };
  End end = End::not_started;
  std::string output;   // standard output, at most 64 MiB
  std::string message;  // one line: what happened, of `infeasible` the first of `output`; empty when done
};

// command[0] is looked up in PATH. The child gets its own process group, killed whole at the limit and at the end;
// standard input is empty. No signal handler and no other child of the caller is touched.
SolverRun run_solver(const std::vector<std::string>& command, std::chrono::milliseconds limit);

// leat-plan: $LEAT_PLAN, else beside the running program, where a build puts it, or its bare name, to be looked up in
// PATH.
std::string solver_path();
// leat-gpu: $LEAT_GPU, else as above.
std::string gpu_tool_path();

}  // namespace leat::planner
