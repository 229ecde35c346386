// leat plan: hands over to `leat-plan plan`, the program that links the solvers. It stands beside this one, or in PATH.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "planner/solver_process.h"
#include "tools/leat/commands.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "application",
     .letter = 'a',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "applications, TOML or JSON"},
    {.name = "host",
     .type = cli::Type::text,
     .value = "auto|FILE",
     .help = "what there is to plan on: this machine's cores, or a file"},
    {.name = "cores", .type = cli::Type::integer, .value = "N", .help = "with --host auto: cores of each partition"},
    {.name = "profiles", .type = cli::Type::path, .value = "DIR", .help = "directory of profiles"},
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "write the plan there ('-': standard output)"},
    {.name = "rules",
     .type = cli::Type::choice,
     .choices = "leat|ppipe",
     .help = "Leat's own rules, or PPipe's problem exactly"},
    {.name = "goal",
     .type = cli::Type::choice,
     .choices = "throughput|partitions|cost|power",
     .help = "what is made largest or least"},
    {.name = "margin", .type = cli::Type::real, .value = "PART", .help = "part of every SLO kept for waiting"},
    {.name = "stages", .type = cli::Type::integer, .value = "N", .help = "most stages of a route"},
    {.name = "explain", .help = "what each SLO costs, which pools bind, what one more partition would bring"},
    {.name = "svg", .type = cli::Type::path, .value = "FILE", .help = "draw the plan"},
    {.name = "mig",
     .help = "the MIG instances that a mix of request sizes wants instead: where they lie, the commands that would "
             "make them, what these would stop; "
             "takes --host and the options below; changes nothing without --apply"},
    {.name = "here", .help = "with --mig: this machine's GPUs instead of a host file"},
    {.name = "apply", .help = "with --mig --here: make the change; MIG mode and what is in use stay as they are"},
    {.name = "gpu", .type = cli::Type::text, .value = "TABLE", .help = "with --mig: a GPU's table instead of a host"},
    {.name = "gpus", .type = cli::Type::integer, .value = "N", .help = "with --mig and --gpu: how many"},
    {.name = "profile",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "with --mig: the model's profile, with rows of the classes mig:PROFILE"},
    {.name = "model",
     .type = cli::Type::choice,
     .value = "NAME",
     .choices = "light|medium|heavy",
     .help = "with --mig: an analytic model instead of a profile"},
    {.name = "batches",
     .type = cli::Type::text,
     .value = "B:SHARE,...",
     .help = "with --mig: distribution of request sizes"},
    {.name = "lognormal",
     .type = cli::Type::text,
     .value = "MU,SIGMA,MAX",
     .help = "with --mig: a log-normal distribution of request sizes"},
    {.name = "sla-ms", .type = cli::Type::real, .value = "MS", .help = "with --mig: latency objective"},
    {.name = "knee", .type = cli::Type::real, .value = "U", .help = "with --mig: PARIS's utilisation knee"},
    {.name = "memory-mib", .type = cli::Type::integer, .value = "MIB", .help = "with --mig: what the model needs"},
    {.name = "method",
     .type = cli::Type::choice,
     .value = "NAME",
     .choices = "exact|paris",
     .help = "with --mig: the layout that serves most, or the one nearest to PARIS's numbers"},
    {.name = "tolerance",
     .type = cli::Type::real,
     .value = "SHARE",
     .help = "with --mig: leave off further changes once this close to the most"},
    {.name = "json", .help = "print the summary as JSON"},
};
constexpr cli::Example kExamples[] = {
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
        "leat-plan-mig(1), have the details.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-plan-plan(1), leat-plan-mig(1), leat-check(1)",
    .exit_status = "0: a plan; 1: no plan meets an SLO or carries the rates; 2: bad input"};

int run(const cli::Arguments& args) {
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
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return cli::fail("leat plan",
                   words[0] + ": cannot be started: " + std::strerror(errno) + "; install leat-plan beside leat");
}

}  // namespace

extern const cli::Subcommand kLeatPlan;
const cli::Subcommand kLeatPlan = {&kCommand, run};

}  // namespace leat::tools
