// leat-plan: applications and profiles in, plans out. Each sub-command lives in its own file command_WORD.cpp, defines
// one `const cli::Subcommand kPlanWord`, and has one line here.
#include <exception>

#include "tools/base/cli/command.h"

namespace leat::planner {

extern const cli::Subcommand kPlanPlan;
extern const cli::Subcommand kPlanCheck;
extern const cli::Subcommand kPlanHarpagon;
extern const cli::Subcommand kPlanMig;

namespace {

const cli::Subcommand* const kSubcommands[] = {&kPlanPlan, &kPlanCheck, &kPlanMig, &kPlanHarpagon};

const cli::Program kProgram = {.name = "leat-plan",
                               .summary = "applications and profiles in, plans out",
                               .description =
                                   "The solvers behind `leat plan`. The daemon runs it as a child, under a time limit, "
                                   "and reads the plan it writes.",
                               .subcommands = kSubcommands};

}  // namespace
}  // namespace leat::planner

int main(int argc, char** argv) {
  try {
    return leat::cli::run_program(leat::planner::kProgram, argc, argv);
  } catch (const std::exception& e) {
    return leat::cli::fail("leat-plan", std::string("ran into an error of its own: ") + e.what());
  }
}
