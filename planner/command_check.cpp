// leat-plan check PLAN: is this file a plan?
#include <cstdio>

#include "planner/plan_io.h"
#include "tools/cli/command.h"

namespace leat::planner {
namespace {

constexpr cli::Positional kPositionals[] = {{.name = "PLAN", .help = "the plan file"}};
constexpr cli::Command kCommand = {.name = "leat-plan check",
                                   .summary = "says whether a file is a plan: indexes, shapes, latencies, budgets",
                                   .positionals = kPositionals};

int run(const cli::Arguments& args) {
  const std::string path = args.positionals()[0];
  const auto file = read_plan(path);
  if (!file) return cli::fail("leat-plan", file.error());
  std::printf("%s: valid: %zu applications, %zu partitions, %zu routes\n", path.c_str(), file->applications.size(),
              file->plan.partitions.size(), file->plan.routes.size());
  return 0;
}

}  // namespace

extern const cli::Subcommand kPlanCheck;
const cli::Subcommand kPlanCheck = {&kCommand, run};

}  // namespace leat::planner
