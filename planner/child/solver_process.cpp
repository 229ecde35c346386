#include "planner/child/solver_process.h"

#include <cstring>

#include "tools/base/subprocess/program.h"
#include "tools/base/subprocess/run.h"

namespace leat::planner {

using subprocess::Ending;

namespace {

void judge(const subprocess::Run& child, std::chrono::milliseconds limit, SolverRun& run) {
  const std::string line = subprocess::last_line(child.errors);
  if (child.ending.how == Ending::How::timed_out) {
    run.end = SolverRun::End::too_long;
    run.message =
        "the solver was stopped after " + std::to_string(limit.count()) + " ms; raise the limit, or plan for less";
  } else if (child.ending.how == Ending::How::signalled) {
    run.end = SolverRun::End::crashed;
    run.message =
        std::string("the solver died of signal ") + ::strsignal(child.ending.code) + (line.empty() ? "" : ": " + line);
  } else if (child.ending.code == 0) {
    run.end = SolverRun::End::done;
  } else if (child.ending.code == 1) {
    run.end = SolverRun::End::infeasible;
    run.message = child.output.substr(0, child.output.find('\n'));  // what is not met; behind it stands what would be
  } else {
    run.end = SolverRun::End::refused;
    run.message = line.empty() ? "the solver " + child.ending.text() : line;
  }
}

}  // namespace

std::string solver_path() {
  return subprocess::named_or_near("LEAT_PLAN", "leat-plan", {"", "../planner", "../../planner"});
}

std::string gpu_tool_path() {
  return subprocess::named_or_near("LEAT_GPU", "leat-gpu", {"", "../cuda/partitions", "../../cuda/partitions"});
}

SolverRun run_solver(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  SolverRun run;
  auto child = subprocess::run({.words = command}, {.limit = limit});
  if (!child.ok()) {
    run.message = child.error();
    return run;
  }
  judge(*child, limit, run);
  run.output = std::move(child->output);
  return run;
}

}  // namespace leat::planner
