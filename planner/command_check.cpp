// leat-plan check PLAN: is this file a plan?
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "planner/command.h"
#include "planner/commands.h"
#include "planner/plan_io.h"

namespace leat::planner {

int run_check(int argc, char** argv) {
  CLI::App app("check a plan file: indexes, shapes, deadlines, rates", argv[0]);
  std::string path;
  app.add_option("plan", path, "the plan file")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  }
  const auto plan = read_plan(path);
  if (!plan) {
    std::fprintf(stderr, "leat-plan: %s\n", plan.error().c_str());
    return kBadInput;
  }
  std::printf("%s: valid: %zu applications, %zu partitions, %zu routes\n", path.c_str(), plan->applications.size(),
              plan->plan.partitions.size(), plan->plan.routes.size());
  return 0;
}

}  // namespace leat::planner
