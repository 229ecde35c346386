// leat plan: hands over to `leat-plan plan`, the program that links the solvers. It stands beside this one, or in PATH.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "planner/child/solver_process.h"
#include "tools/base/subprocess/program.h"
#include "tools/leat/change/change_watch.h"
#include "tools/leat/commands.h"
#include "tools/plan/plan_options.h"

namespace leat::tools {
namespace {

constexpr cli::Option kMig = {
    .name = "mig",
    .help =
        "the MIG instances that a mix of request sizes wants instead: where they lie, the commands that would make "
        "them, what these would stop; takes --host, --json and the options below; changes nothing without --apply"};

constexpr bool of_plan(const cli::Option& option) {
  return std::any_of(std::begin(planner::kPlanOptions), std::end(planner::kPlanOptions),
                     [&](const cli::Option& other) { return other.name == option.name; });
}

// leat-plan judges: what is missing, and what is out of bounds.
constexpr cli::Option unjudged(cli::Option option) {
  option.required = false;
  option.min = -std::numeric_limits<double>::infinity();
  option.max = std::numeric_limits<double>::infinity();
  return option;
}

constexpr cli::Option kDryRun = {.name = "dry-run",
                                 .help = "with --apply FILE: only print in which waves workers would start"};

constexpr auto kOptions = [] {
  constexpr std::size_t kOwn = std::count_if(std::begin(planner::kMigOptions), std::end(planner::kMigOptions),
                                             [](const cli::Option& o) { return !of_plan(o); });
  std::array<cli::Option, std::size(planner::kPlanOptions) + 3 + kOwn> out;
  std::size_t count = 0;
  for (const cli::Option& option : planner::kPlanOptions) out[count++] = unjudged(option);
  out[count++] = kMig;
  out[count++] = kDryRun;
  out[count++] = kSocketOption;
  for (const cli::Option& option : planner::kMigOptions)
    if (!of_plan(option)) out[count++] = unjudged(option);
  return out;
}();
constexpr cli::Positional kPositionals[] = {
    {.name = "FILE", .help = "with --apply: a plan that leatd is to serve by from now on", .min = 0}};
constexpr cli::Example kExamples[] = {
    {.line = "leat plan --apply plan.json", .text = "leatd serves by that plan, without a restart"},
    {.line = "leat plan --application street.toml --host auto --profiles profiles/ -o plan.json",
     .text = "a plan for this machine's cores"},
    {.line = "leat plan --mig --gpu A100-40 --gpus 2 --model medium --lognormal 1.1,0.9,32",
     .text = "instances for two A100, and the commands that would make them"},
};
constexpr cli::Command kCommand = {
    .name = "leat plan",
    .summary = "from applications, a host and profiles to a plan for leatd",
    .description =
        "Runs leat-plan plan (leat-plan mig with --mig), whose manual pages, leat-plan-plan(1) and "
        "leat-plan-mig(1), have the details.\n\n"
        "With --apply FILE nothing is planned: leatd takes the plan while it serves. New workers start beside the old "
        "ones whose models or blocks change, wave after wave, and the plan takes over between two batches; where a "
        "step fails the plan before stays in force.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-plan-plan(1), leat-plan-mig(1), leat-check(1)",
    .exit_status = "0: a plan; 1: no plan meets an SLO or carries the rates; 2: bad input"};

int apply(const cli::Arguments& args) {
  const std::string& file = args.positionals()[0];
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return cli::fail("leat plan", "there is no file " + file + "; make it by leat plan -o " + file);
  shm::Change what;
  what.kind = shm::ChangeKind::plan;
  what.dry_run = args.flag("dry-run") ? 1 : 0;
  return watch_change(kCommand, args, what, std::filesystem::absolute(file).lexically_normal().string());
}

int run(const cli::Arguments& args) {
  if (!args.positionals().empty()) {
    if (args.given("apply") && !args.given("mig")) return apply(args);
    return cli::fail("leat plan", "a plan is given with --apply, or not at all; see leat plan --help");
  }
  for (const char* own : {"dry-run", "socket"})
    if (args.given(own)) return cli::fail("leat plan", "--" + std::string(own) + " goes with --apply FILE");
  std::vector<std::string> words = {planner::solver_path(), args.given("mig") ? "mig" : "plan"};
  for (const cli::Option& option : kOptions) {
    if (!args.given(option.name) || option.name == "mig") continue;
    words.push_back("--" + std::string(option.name));
    if (option.type == cli::Type::integer)
      words.push_back(std::to_string(args.integer(option.name)));
    else if (option.type == cli::Type::real)
      words.push_back(std::to_string(args.real(option.name)));
    else if (option.type != cli::Type::flag)
      words.push_back(args.text(option.name));
  }
  const std::string why = subprocess::replace_this_program(words);
  return cli::fail("leat plan", words[0] + ": cannot be started: " + why + "; install leat-plan beside leat");
}

}  // namespace

extern const cli::Subcommand kLeatPlan;
const cli::Subcommand kLeatPlan = {&kCommand, run};

}  // namespace leat::tools
