// The options of `leat-plan plan` and `leat-plan mig`, which `leat plan` has too: one table each.
#pragma once

#include "planner/mig/change.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"

namespace leat::planner {

inline constexpr cli::Option kPlanOptions[] = {
    {.name = "application",
     .letter = 'a',
     .type = cli::Type::path,
     .value = "FILE",
     .required = true,
     .help = "applications, TOML or JSON (docs/guide/plans.md); leatd's configuration is one"},
    {.name = "host",
     .type = cli::Type::text,
     .value = "auto|FILE",
     .fallback = "auto",
     .help = "what there is to plan on: this machine's cores, or a file"},
    cli::integer_option("cores", "1", 1, 4096, "with --host auto: cores of each partition (class cpu:N)"),
    {.name = "profiles", .type = cli::Type::path, .value = "DIR", .required = true, .help = "directory of profiles"},
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "write the plan there ('-': standard output)"},
    {.name = "rules",
     .type = cli::Type::choice,
     .choices = "leat|ppipe",
     .fallback = "leat",
     .help = "leat: more stages, shares packed over all routes, or partitions shared in time where that carries more; "
             "ppipe: PPipe's problem exactly"},
    {.name = "goal",
     .type = cli::Type::choice,
     .choices = "throughput|partitions|cost|power",
     .fallback = "throughput",
     .help = "raise the smallest rate / weight, or carry the stated rates with the least of something"},
    cli::real_option("margin", "0.4", 0, 0.95, "part of every SLO kept for waiting", "PART"),
    cli::integer_option("stages", "2", 1, 4, "most stages of a route by ppipe's rules; leat's go to 3 or N"),
    {.name = "solver",
     .type = cli::Type::choice,
     .choices = "search|glpk",
     .fallback = "search",
     .help = "glpk: also state the plan with partitions of their own as a mixed integer program for GLPK, in a child "
             "process, and print its bound beside the search's"},
    cli::real_option("limit", "60", 0.1, 1e6, "with --solver glpk: for GLPK; the best plan by then is taken",
                     "SECONDS"),
    {.name = "constraints",
     .type = cli::Type::path,
     .value = "FILE",
     .help =
         "linear constraints of your own, TOML or JSON (docs/guide/planning.md, \"Constraints of your own\"); all but "
         "limits of memory need --solver glpk; partitions are then not shared in time"},
    {.name = "from",
     .type = cli::Type::path,
     .value = "PLAN",
     .help =
         "not from nothing: the sets of models that this plan's partitions hold, changed only where each model that "
         "has to be loaded gains 3 % of what is carried; it is not tried in the simulator"},
    {.name = "nearest", .help = "where the host does not carry the stated rates, plan for as much of them as it does"},
    cli::integer_option(
        "try", "8000", 0, 1e7,
        "with leat's rules and throughput: requests of each simulation in which a plan is tried before it is "
        "written, its rates lowered to what is kept (0: it is not tried)"),
    {.name = "explain", .help = "what each SLO costs, which pools bind, what one more partition would bring"},
    {.name = "svg", .type = cli::Type::path, .value = "FILE", .help = "draw the plan"},
    cli::json_option("print the summary as JSON in place of text"),
};

inline constexpr cli::Option kMigOptions[] = {
    {.name = "host",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "host file with the driver's geometry and the instances in force"},
    {.name = "here", .help = "instead of a file: ask this machine's GPUs, and whether they could be changed so"},
    {.name = "apply", .help = "with --here: make the change; MIG mode and instances in use stay as they are"},
    {.name = "gpu",
     .type = cli::Type::text,
     .value = "TABLE",
     .help = "instead of a host: the table of A30, A100-40, A100-80, H100-80 or H200-141"},
    cli::integer_option("gpus", "1", 1, kMaxMigGpus, "with --gpu: how many"),
    {.name = "profile",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "the model's profile, with rows of the classes mig:PROFILE"},
    {.name = "model",
     .type = cli::Type::choice,
     .value = "NAME",
     .choices = "light|medium|heavy",
     .help = "instead of a profile: an analytic model"},
    {.name = "batches",
     .type = cli::Type::text,
     .value = "B:SHARE,...",
     .help = "distribution of request sizes, for example 1:0.5,4:0.3,8:0.2"},
    {.name = "lognormal",
     .type = cli::Type::text,
     .value = "MU,SIGMA,MAX",
     .fallback = "1.1,0.9,32",
     .help = "instead of --batches: a log-normal one, cut at MAX"},
    {.name = "sla-ms",
     .type = cli::Type::real,
     .value = "MS",
     .min = 0.001,
     .max = 1e7,
     .help = "latency objective; default: 1.5 times the largest partition's at the largest size"},
    cli::real_option("knee", "0.8", 0.05, 1, "PARIS's utilisation knee", "U"),
    cli::integer_option("memory-mib", "0", 0, 1e7, "what the model needs; smaller profiles are not used", "MIB"),
    {.name = "method",
     .type = cli::Type::choice,
     .value = "NAME",
     .choices = "exact|paris",
     .fallback = "exact",
     .help = "exact: the layout that serves most; paris: the one nearest to PARIS's numbers"},
    cli::real_option("tolerance", "0.02", 0, 1, "leave off further changes once this close to the most", "SHARE"),
    cli::json_option(),
};

}  // namespace leat::planner
