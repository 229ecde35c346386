// leat-plan plan: applications, a host and profiles in; a plan out, with what it proves and what would change it.
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "planner/build/build_plan.h"
#include "planner/build/plan_checker.h"
#include "planner/io/application_io.h"
#include "planner/io/profile_io.h"
#include "planner/pooled/milp.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/waiting.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_svg.h"
#include "tools/plan/tried_plan.h"

namespace leat::planner {
namespace {

constexpr int kInfeasible = 1;

constexpr cli::Command kCommand = {
    .name = "leat-plan plan",
    .summary = "from applications, a host and profiles to partitions, blocks, routes and budgets",
    .description =
        "An SLO or a rate that cannot be met is a result, not a failure: the nearest feasible one is printed, and the "
        "exit status is 1.",
    .options = kPlanOptions,
    .exit_status = "0: a plan; 1: no plan meets an SLO or, without --nearest, carries the rates; 2: bad input"};

Goal goal_of(const std::string& word) {
  return word == "partitions" ? Goal::partitions
         : word == "cost"     ? Goal::cost
         : word == "power"    ? Goal::power
                              : Goal::throughput;
}

Json to_json(const PlanOutcome& o, const Trial& trial) {
  const Certificate& c = o.solution.certificate;
  Json out = {{"feasible", o.feasible},
              {"objective", c.objective},
              {"upper_bound", c.upper_bound},
              {"gap", c.gap},
              {"ppipe_objective", o.strict_objective},
              {"method", c.method},
              {"binding", c.binding},
              {"seconds", c.seconds},
              {"shared", o.shared},
              {"dedicated_objective", o.dedicated_objective}};
  if (o.shared_rate > 0) out["rate_shared"] = o.shared_rate, out["rate_dedicated"] = o.dedicated_rate;
  if (o.milp.seconds > 0) {
    out["bounds"] = {{"search", o.search_bound}, {"glpk", std::isfinite(o.milp.bound) ? Json(o.milp.bound) : Json()}};
    out["glpk"] = {{"objective", o.milp.objective},
                   {"proven", o.milp.proven},
                   {"columns", o.milp.columns},
                   {"rows", o.milp.rows},
                   {"seconds", o.milp.seconds}};
    if (!o.milp.problem.empty()) out["glpk"]["problem"] = o.milp.problem;
  }
  if (o.carried > 0) out["rates_carried"] = o.carried;
  if (trial.tried)
    out["tried"] = {
        {"in_time_at_promise", trial.promised}, {"kept", trial.kept}, {"most", trial.max}, {"plans", trial.plans}};
  for (const Shortfall& s : o.slos)
    out["slo_not_met"].push_back(
        {{"application", s.application}, {"slo_ms", s.slo_ms}, {"nearest_feasible_ms", s.needed_ms}});
  for (const Marginal& m : o.marginals) out["marginals"].push_back({{"what", m.what}, {"objective", m.objective}});
  return out;
}

void print_routes(const PlanFile& file) {
  for (const Route& r : file.plan.routes) {
    std::printf("  %s/%s: %.1f requests/s, batch %u:", file.applications[r.application].name.c_str(),
                file.applications[r.application].modules[r.module].name.c_str(), r.rate_rps, r.batch);
    for (const Stage& s : r.stages) {
      const Partition& p = file.plan.partitions[s.pool[0]];
      std::printf(" [blocks %u-%u on %zu x %s", s.first_block, s.end_block - 1, s.pool.size(),
                  p.partition_class.c_str());
      if (p.share > 1) std::printf(" 1/%u", p.share);
      std::printf(", %.2f ms]", static_cast<double>(s.latency_by_batch.back().p50_ns) / 1e6);
    }
    std::printf("\n");
  }
}

void print(const Trial& trial) {
  if (!trial.tried) return;
  if (trial.kept >= 1) {
    std::printf("tried: in the simulator %.2f %% are in time at that rate, and 99 %% up to %.3g times it\n",
                100 * trial.promised, trial.max);
  } else if (trial.kept > 0) {
    std::printf("tried: in the simulator only %.2f %% would be in time at what was planned; lowered to %.1f %% of it\n",
                100 * trial.promised, 100 * trial.kept);
  } else {
    std::printf("tried: in the simulator 99 %% are in time at no rate; a longer SLO or smaller batches are needed\n");
  }
}

void print(const MilpAnswer& milp, double search_bound) {
  if (!(milp.seconds > 0)) return;
  std::printf("bounds: the search's %.6g, GLPK's ", search_bound);
  if (std::isfinite(milp.bound)) {
    std::printf("%.6g%s, after %.1f s\n", milp.bound, milp.proven ? ", proven" : "", milp.seconds);
  } else {
    std::printf("none after %.1f s (%" PRIu64 " columns, %" PRIu64 " rows)%s%s\n", milp.seconds, milp.columns,
                milp.rows, milp.problem.empty() ? "" : ": ", milp.problem.c_str());
  }
}

void print(const PlanRequest& request, const PlanOutcome& o, const Trial& trial, bool nearest) {
  for (const Shortfall& s : o.slos) {
    std::printf(
        "infeasible: application '%s': SLO %.2f ms; the fastest routes need %.2f ms with the margin of %.0f %%: %.2f "
        "ms short; nearest feasible SLO: %.2f ms\n",
        s.application.c_str(), s.slo_ms, s.needed_ms, request.margin * 100, s.needed_ms - s.slo_ms, s.needed_ms);
  }
  const Certificate& c = o.solution.certificate;
  if (!o.slos.empty()) return;
  if (!o.solution.feasible) {
    if (o.milp.seconds > 0 && o.strict_objective > 0) {
      std::printf("infeasible: %s\n", c.binding.c_str());
    } else {
      std::printf("infeasible: the host has too few partitions for every module to get one; %s\n", c.binding.c_str());
    }
    print(o.milp, o.search_bound);
    return;
  }
  if (o.carried > 0 && o.carried < 1 - 1e-9) {
    std::printf(
        "%sthe host carries %.1f %% of the stated rates (at most %.1f %%); nearest feasible: all rates times %.4f; "
        "binding: %s\n",
        nearest ? "" : "infeasible: ", o.carried * 100, c.upper_bound * 100, o.carried, c.binding.c_str());
  }
  if (o.shared) {
    std::printf("modules share the partitions in time: %.6g, waits included", c.objective);
    if (o.dedicated_rate > 0) std::printf("; partitions of their own would carry %.6g", o.dedicated_rate);
    std::printf("; the work alone allows %.6g\n", c.upper_bound);
  } else {
    std::printf("objective %.6g, at most %.6g (gap %.2g); by PPipe's rules %.6g\n", c.objective, c.upper_bound, c.gap,
                o.strict_objective);
  }
  std::printf("binding: %s\n", c.binding.c_str());
  print(o.milp, o.search_bound);
  print(trial);
  print_routes(o.file);
  for (const Marginal& m : o.marginals)
    std::printf("  %-40s %.6g (%+.2f %%)\n", m.what.c_str(), m.objective,
                (m.objective / o.marginals[0].objective - 1) * 100);
}

int run(const cli::Arguments& args) {
  PlanRequest request;
  auto applications = read_applications(args.text("application"));
  if (!applications) return cli::fail("leat-plan", applications.error());
  auto profiles = read_profiles(args.text("profiles"));
  if (!profiles) return cli::fail("leat-plan", profiles.error());
  request.applications = std::move(*applications);
  request.profiles = std::move(*profiles);
  if (args.text("host") == "auto") {
    auto host = this_host(static_cast<std::uint32_t>(args.integer("cores")), request.applications, request.profiles);
    if (!host) return cli::fail("leat-plan", host.error());
    request.host = std::move(*host);
  } else {
    auto host = read_host(args.text("host"));
    if (!host) return cli::fail("leat-plan", host.error());
    request.host = std::move(*host);
  }
  request.goal = goal_of(args.text("goal"));
  request.rules = args.text("rules") == "ppipe" ? Rules::ppipe : Rules::leat;
  request.margin = args.real("margin");
  if (args.given("constraints")) {
    auto constraints = read_constraints(args.text("constraints"));
    if (!constraints) return cli::fail("leat-plan", constraints.error());
    request.constraints = std::move(*constraints);
  }
  if (args.given("from")) {
    auto from = read_plan(args.text("from"));
    if (!from) return cli::fail("leat-plan", from.error());
    request.from = std::move(*from);
  }
  if (args.text("solver") == "glpk") {
    const std::chrono::milliseconds limit(std::llround(args.real("limit") * 1000));
    request.milp = [limit](const PooledProblem& problem, const MilpRules& rules, std::span<const MilpRow> rows) {
      return solve_milp(problem, rules, rows, limit);
    };
  }
  request.max_stages = static_cast<std::uint32_t>(args.integer("stages"));
  std::optional<cli::Waiting> waiting("looking for a plan");
  auto outcome = build_plan(request);
  if (!outcome) return waiting.reset(), cli::fail("leat-plan", outcome.error());
  Trial trial;
  if (request.rules == Rules::leat && request.goal == Goal::throughput && !request.from) {
    waiting.emplace("trying the plan in the simulator");
    trial = try_plan(request, *outcome, static_cast<std::uint64_t>(args.integer("try")));
  }
  waiting.reset();
  if (outcome->solution.feasible) {
    const std::string wrong = problem_of(outcome->file);
    const std::string broken = wrong.empty() ? broken_promise(outcome->file, request.profiles) : wrong;
    if (!broken.empty()) return cli::fail("leat-plan", "the plan breaks its own promise: " + broken);
    if (args.flag("explain")) explain(request, *outcome);
  }
  const cli::JsonOutput json(args);
  const bool nearest = args.flag("nearest");
  if (!json.alone() && args.text("output") != "-") print(request, *outcome, trial, nearest);
  if (const int failed = json.write(to_json(*outcome, trial).dump(1)); failed != 0) return failed;
  if (!outcome->feasible && !(nearest && outcome->solution.feasible)) return kInfeasible;
  if (args.given("output")) {
    if (const Status s = write_plan(args.text("output"), outcome->file); !s) return cli::fail("leat-plan", s.error());
  }
  if (args.given("svg")) {
    if (const Status s = write_text_file(args.text("svg"), plan_svg(outcome->file)); !s)
      return cli::fail("leat-plan", s.error());
  }
  return 0;
}

}  // namespace

extern const cli::Subcommand kPlanPlan;
const cli::Subcommand kPlanPlan = {&kCommand, run};

}  // namespace leat::planner
