// pooled_study: every scenario of a directory in PPipe's format, by PPipe's rules and its baselines, against the
// stored reference.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/study.h"
#include "planner/papers/ppipe_scenarios.h"
#include "planner/papers/replicated_pairs.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/milp.h"
#include "planner/pooled/solver.h"

namespace leat::planner {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "data",
     .type = cli::Type::path,
     .value = "DIR",
     .required = true,
     .help = "models.csv, boundaries.csv, profiles/, scenarios.json and, if there, reference_plans.json"},
    {.name = "only",
     .type = cli::Type::text,
     .value = "TEXT",
     .help = "only scenarios whose id or family contains TEXT"},
    {.name = "leat", .help = "also solve by Leat's own rules: another problem, so another column"},
    cli::integer_option("steps", "0", 0, 1'000'000'000'000, "effort of each search; 0: as a plan gets"),
    cli::integer_option(
        "glpk", "0", 0, 600'000,
        "also solve the whole-GPU program with GLPK, each within MS milliseconds; with --leat, what the search "
        "leaves unproven, beyond its plan",
        "MS"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "pooled_study",
    .summary = "solves PPipe's scenarios by its rules and compares with the stored plans",
    .description =
        "Methods: ppipe (pooled pipelines, exact), np (whole models on whole GPUs, exact), dart_r (replicated pairs; "
        "it inherits np's split of the GPUs, which is not unique: the stored plan's split where there is one).\n\n"
        "Every plan is re-checked against the problem's constraints before it is reported.",
    .options = kOptions};

struct Row {
  std::string id, family, method;
  PooledSolution solution;
  double reference = 0, reference_seconds = 0;
};

// GLPK's certificate of the problem with whole GPUs, or by Leat's rules beyond what the search has found.
PooledSolution by_glpk(const PooledProblem& problem, const MilpRules& rules, int limit_ms) {
  MilpAnswer answer = solve_milp(problem, rules, {}, std::chrono::milliseconds(limit_ms));
  PooledSolution out;
  out.feasible = answer.feasible;
  out.lp_bound = answer.lp_bound;
  const double objective = std::max(answer.objective, rules.known);
  if (rules.whole) out.whole_gpu_objective = answer.objective;
  out.dnns = std::move(answer.dnns);
  out.certificate = {objective,
                     answer.bound,
                     answer.bound > 0 && std::isfinite(answer.bound) ? (answer.bound - objective) / answer.bound : 1,
                     "",
                     "GLPK, Gomory and MIR cuts, " + std::to_string(answer.columns) + " columns",
                     answer.seconds};
  return out;
}

void run_scenario(const Scenario& s, bool leat, const PooledEffort& effort, int glpk_ms, std::vector<Row>& rows) {
  const auto add = [&](const char* method, PooledSolution solution) {
    const auto reference =
        s.reference.find(std::string(method) == "glpk" || std::string(method).starts_with("leat") ? "ppipe" : method);
    const auto seconds = s.reference_seconds.find(method);
    rows.push_back({s.id, s.family, method, std::move(solution), reference == s.reference.end() ? 0 : reference->second,
                    seconds == s.reference_seconds.end() ? 0 : seconds->second});
  };
  add("ppipe", solve_pooled(s.problem, effort));
  if (glpk_ms > 0) add("glpk", by_glpk(s.problem, {.whole = true}, glpk_ms));
  if (leat) {
    PooledSolution free = solve_free(s.problem, effort);
    const Certificate c = free.certificate;
    add("leat", std::move(free));
    if (glpk_ms > 0 && c.gap > 0) add("leat, GLPK", by_glpk(s.problem, {.free = true, .known = c.objective}, glpk_ms));
  }
  if (s.family == "ablation") return;  // its stored np follows other rules (no link caps, any batch)
  PooledSolution np = solve_whole_models(s.problem);
  const auto stored = s.plans.find("np");
  if (s.problem.types.size() == 2 && np.feasible) {
    add("dart_r",
        solve_replicated_pairs(s.problem, gpus_taken(s.problem, stored == s.plans.end() ? np.dnns : stored->second)));
  }
  add("np", std::move(np));
}

Json to_json(const Row& r) {
  const Certificate& c = r.solution.certificate;
  Json out = {{"id", r.id}, {"family", r.family}, {"method", r.method}, {"objective", c.objective}};
  out["reference"] = r.reference > 0 ? Json(r.reference) : Json(nullptr);
  const bool bounded = c.upper_bound > 0;
  out["upper_bound"] = bounded ? Json(c.upper_bound) : Json(nullptr);
  out["gap"] = bounded ? Json(c.gap) : Json(nullptr);
  out["seconds"] = c.seconds;
  out["lp_bound"] = r.solution.lp_bound > 0 ? Json(r.solution.lp_bound) : Json(nullptr);
  out["whole_gpu_objective"] = r.solution.whole_gpu_objective;
  out["reference_seconds"] = r.reference_seconds > 0 ? Json(r.reference_seconds) : Json(nullptr);
  out["certificate"] = c.method;
  out["binding"] = c.binding;
  return out;
}

struct Summary {
  double log_seconds = 0, worst_seconds = 0, worst_below = 0, widest_gap = 0;
  std::size_t count = 0, proven = 0;
};

Summary summarise(const std::vector<Row>& rows, const std::string& method) {
  Summary s;
  for (const Row& r : rows) {
    if (r.method != method) continue;
    const Certificate& c = r.solution.certificate;
    ++s.count;
    s.proven += c.upper_bound > 0 && c.gap <= 0;
    s.log_seconds += std::log(std::max(c.seconds, 1e-9));
    s.worst_seconds = std::max(s.worst_seconds, c.seconds);
    s.widest_gap = std::max(s.widest_gap, c.gap);
    if (r.reference > 0) s.worst_below = std::max(s.worst_below, 1 - c.objective / r.reference);
  }
  return s;
}

int run(const cli::Arguments& args) {
  const auto set = read_scenarios(args.text("data"));
  if (!set) return cli::fail("pooled_study", set.error());
  std::vector<const Scenario*> chosen;
  for (const Scenario& s : set->scenarios) {
    if (!args.given("only") || s.id.find(args.text("only")) != std::string::npos || s.family == args.text("only"))
      chosen.push_back(&s);
  }
  if (chosen.empty())
    return cli::fail("pooled_study", "--only " + args.text("only") + ": no scenario's id or family contains it");
  std::vector<Row> rows;
  {
    cli::Progress progress("scenarios", chosen.size(), "scenarios");
    for (const Scenario* s : chosen) {
      const std::size_t first = rows.size();
      run_scenario(*s, args.flag("leat"), {.steps = static_cast<std::uint64_t>(args.integer("steps"))},
                   static_cast<int>(args.integer("glpk")), rows);
      for (std::size_t r = first; r < rows.size(); ++r) {
        if (rows[r].solution.dnns.empty()) continue;
        const PooledProblem& solved = rows[r].method == "np" ? whole_models_only(s->problem) : s->problem;
        const std::string wrong = rows[r].method.starts_with("leat")
                                      ? problem_of_free(s->problem, rows[r].solution.dnns, {})
                                      : problem_of(solved, rows[r].solution.dnns, {}, rows[r].method == "dart_r");
        if (!wrong.empty())
          return cli::fail("pooled_study", s->id + " by " + rows[r].method + ": the plan breaks its rules: " + wrong);
      }
      progress.add(1);
    }
  }
  const cli::JsonOutput json(args);
  Json out = {{"scenarios", Json::array()}};
  for (const Row& r : rows) out["scenarios"].push_back(to_json(r));
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%-64s %-10s %12s %12s %10s %9s %9s %9s\n", "scenario", "method", "objective", "reference", "ratio",
              "gap", "seconds", "reference");
  for (const Row& r : rows) {
    const Certificate& c = r.solution.certificate;
    std::printf("%-64s %-10s %12.3f %12.3f %10.6f %9s %9.4f %9.2f\n", r.id.c_str(), r.method.c_str(), c.objective,
                r.reference, r.reference > 0 ? c.objective / r.reference : 0,
                c.upper_bound > 0 ? std::to_string(c.gap).c_str() : "-", c.seconds, r.reference_seconds);
  }
  for (const char* method : {"ppipe", "leat", "leat, GLPK", "glpk", "np", "dart_r"}) {
    const Summary s = summarise(rows, method);
    if (s.count == 0) continue;
    std::printf(
        "%-10s %3zu plans, %zu proven optimal, widest gap %.5f, worst below its reference %.2g, seconds: geometric "
        "mean "
        "%.4f, worst %.4f\n",
        method, s.count, s.proven, s.widest_gap, s.worst_below, std::exp(s.log_seconds / static_cast<double>(s.count)),
        s.worst_seconds);
  }
  return 0;
}

}  // namespace

}  // namespace leat::planner

int main(int argc, char** argv) {
  return leat::planner::run(leat::cli::parse_or_exit(leat::planner::kCommand, argc, argv));
}
