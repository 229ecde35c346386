// leat-plan harpagon: the cheapest machines for an application's rate and SLO, by any of the compared systems.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "planner/harpagon/greedy.h"
#include "planner/harpagon/plan.h"
#include "planner/io/application_io.h"
#include "planner/io/profile_io.h"
#ifdef LEAT_PAPERS
#include "planner/papers/harpagon_systems.h"
#endif
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace leat::planner {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "application",
     .type = cli::Type::path,
     .value = "FILE",
     .required = true,
     .help = "applications, TOML or JSON; rate_rps must stand"},
    {.name = "profiles", .type = cli::Type::path, .value = "DIR", .required = true, .help = "directory of profiles"},
    {.name = "price",
     .type = cli::Type::text,
     .value = "CLASS[/SHARE]=PRICE",
     .required = true,
     .repeat = true,
     .help = "a partition class that may be used and its price per second; repeat for each"},
    {.name = "system",
     .type = cli::Type::text,
     .value = "NAME",
     .fallback = "leat",
     .help = "planner: leat, harpagon, nexus, ..."},
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "write the plan of the only application there ('-': standard output)"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "leat-plan harpagon",
                                   .summary = "the cheapest machines that serve a rate within an SLO (Harpagon)",
                                   .options = kOptions,
                                   .examples = {}};

using Planner = std::function<HarpagonPlan(const HarpagonProblem&)>;

bool parse_price(const std::string& text, PricedClass& out) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return false;
  char* end = nullptr;
  out.price = std::strtod(text.c_str() + equals + 1, &end);
  if (end == text.c_str() + equals + 1 || *end != 0 || !(out.price > 0) || !std::isfinite(out.price)) return false;
  out.partition_class = text.substr(0, equals);
  const std::size_t slash = out.partition_class.rfind('/');
  if (slash == std::string::npos) return true;
  const long share = std::strtol(out.partition_class.c_str() + slash + 1, &end, 10);
  if (*end != 0 || share < 1 || share > 64) return true;  // a slash of the class's own name
  out.share = static_cast<std::uint32_t>(share);
  out.partition_class.resize(slash);
  return true;
}

Json to_json(const HarpagonProblem& problem, const HarpagonPlan& plan, const std::vector<PricedClass>& classes) {
  Json out = {{"application", problem.name}, {"slo_s", problem.slo_s}, {"feasible", plan.feasible()}};
  if (!plan.feasible()) return out;
  out["cost"] = plan.cost;
  out["latency_s"] = plan.latency_s;
  out["proven"] = plan.proven;
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const ModuleSchedule& s = plan.modules[m];
    Json module = {{"module", problem.modules[m].name},
                   {"rate_rps", problem.modules[m].rate_rps},
                   {"dummy_rps", s.dummy_rps},
                   {"latency_s", s.latency_s},
                   {"cost", s.cost}};
    for (const Tuple& t : s.tuples)
      module["tuples"].push_back({{"class", classes[t.configuration.hardware].partition_class},
                                  {"batch", t.configuration.batch},
                                  {"machines", t.machines},
                                  {"rate_rps", t.rate_rps()}});
    out["modules"].push_back(module);
  }
  return out;
}

void print(const HarpagonProblem& problem, const HarpagonPlan& plan, const std::vector<PricedClass>& classes) {
  if (!plan.feasible()) {
    std::printf("%s: infeasible: no machines keep the SLO of %.1f ms at this rate\n", problem.name.c_str(),
                problem.slo_s * 1e3);
    return;
  }
  std::printf("%s: cost %.3f, worst case %.1f of %.1f ms%s\n", problem.name.c_str(), plan.cost, plan.latency_s * 1e3,
              problem.slo_s * 1e3, plan.proven ? ", proven cheapest" : "");
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const ModuleSchedule& s = plan.modules[m];
    std::printf("  %-16s %8.1f req/s, worst case %7.1f ms, cost %7.3f:", problem.modules[m].name.c_str(),
                problem.modules[m].rate_rps, s.latency_s * 1e3, s.cost);
    for (const Tuple& t : s.tuples)
      std::printf("  %.2f x batch %u on %s", t.machines, t.configuration.batch,
                  classes[t.configuration.hardware].partition_class.c_str());
    if (s.dummy_rps > 0) std::printf("  (%.1f req/s of dummies)", s.dummy_rps);
    std::printf("\n");
  }
}

#ifdef LEAT_PAPERS
Result<Planner> planner_of(const std::string& name) {
  if (const HarpagonSystem* system = find_harpagon_system(name))
    return Planner([system](const HarpagonProblem& problem) { return plan_with(*system, problem); });
  std::string names;
  for (const HarpagonSystem& s : harpagon_systems()) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return Error{"--system " + name + ": no such system; there are " + names};
}
#else
Result<Planner> planner_of(const std::string& name) {
  if (name == "leat") return Planner(cheapest_plan);
  return Error{"--system " + name + ": here is leat alone; the papers' systems need a build with -DLEAT_PAPERS=ON"};
}
#endif

int run(const cli::Arguments& args) {
  const Result<Planner> planner = planner_of(args.text("system"));
  if (!planner) return cli::fail("leat-plan", planner.error());
  std::vector<PricedClass> classes;
  for (const std::string& text : args.texts("price")) {
    classes.emplace_back();
    if (!parse_price(text, classes.back()))
      return cli::fail("leat-plan", "--price " + text + ": write CLASS=PRICE with a positive price");
  }
  const auto applications = read_applications(args.text("application"));
  if (!applications) return cli::fail("leat-plan", applications.error());
  const auto profiles = read_profiles(args.text("profiles"));
  if (!profiles) return cli::fail("leat-plan", profiles.error());
  if (args.given("output") && applications->size() != 1)
    return cli::fail("leat-plan",
                     "--output: one application only; this file has " + std::to_string(applications->size()));
  const cli::JsonOutput json(args);
  Json all = Json::array();
  for (const Application& application : *applications) {
    const auto problem = harpagon_problem(application, *profiles, classes);
    if (!problem) return cli::fail("leat-plan", problem.error());
    const HarpagonPlan plan = (*planner)(*problem);
    all.push_back(to_json(*problem, plan, classes));
    if (!json.alone()) print(*problem, plan, classes);
    if (!args.given("output")) continue;
    if (!plan.feasible()) return cli::fail("leat-plan", application.name + ": infeasible: no plan written");
    const Status written = write_plan(args.text("output"), harpagon_plan_file(application, *problem, plan, classes));
    if (!written) return cli::fail("leat-plan", written.error());
  }
  return json.write(all.dump(1));
}

}  // namespace

extern const cli::Subcommand kPlanHarpagon;
const cli::Subcommand kPlanHarpagon = {&kCommand, run};

}  // namespace leat::planner
