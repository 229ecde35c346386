// leat-plan check PLAN: is this file a plan?
#include <cstdio>

#include "planner/build/plan_checker.h"
#include "planner/io/plan_io.h"
#include "planner/io/profile_io.h"
#include "tools/base/cli/command.h"

namespace leat::planner {
namespace {

constexpr cli::Positional kPositionals[] = {{.name = "PLAN", .help = "the plan file"}};
constexpr cli::Option kOptions[] = {
    {.name = "profiles",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "also re-derive latencies, rates and SLOs from these profiles"},
};
constexpr cli::Command kCommand = {.name = "leat-plan check",
                                   .summary = "says whether a file is a plan: indexes, shapes, latencies, budgets",
                                   .options = kOptions,
                                   .positionals = kPositionals};

int run(const cli::Arguments& args) {
  const std::string path = args.positionals()[0];
  const auto file = read_plan(path);
  if (!file) return cli::fail("leat-plan", file.error());
  if (args.given("profiles")) {
    const auto profiles = read_profiles(args.text("profiles"));
    if (!profiles) return cli::fail("leat-plan", profiles.error());
    const std::string broken = broken_promise(*file, *profiles);
    if (!broken.empty()) return cli::fail("leat-plan", path + ": " + broken);
  }
  std::printf("%s: valid: %zu applications, %zu partitions, %zu routes\n", path.c_str(), file->applications.size(),
              file->plan.partitions.size(), file->plan.routes.size());
  return 0;
}

}  // namespace

extern const cli::Subcommand kPlanCheck;
const cli::Subcommand kPlanCheck = {&kCommand, run};

}  // namespace leat::planner
