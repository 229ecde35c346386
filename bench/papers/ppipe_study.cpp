// PPipe's data plane (Kong et al., sections 7.2 and 7.4) on its reference plans: for every DNN the largest load factor
// at which at least 99 % of its requests are answered in time, averaged over the DNNs of every cluster and group.
//
// Load factor 1.0 is the rate that PPipe's own plan gives that DNN, for every plan and preset. All DNNs of a scenario
// run together and share servers and links; latencies are exact; arrivals are Poisson, or Gamma gaps with a stated
// coefficient of variation. A GPU cut into v shares is v partitions; a server's GPUs share one link each way.
//
// How the pools of a plan are laid on servers is the scheduler's freedom: `packed` fills server after server, pool
// after pool; `spread` looks for the servers where features wait least for their links, measured in the slack of their
// DNN.
//
// --links authors: the links of PPipe's authors' simulator instead (engine/sim/pool_links.h), for every contender;
// servers, and so `spread`, mean nothing there. --rates whole cuts every DNN's rate to whole requests/s, as it does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/papers/ppipe_profiles.h"
#include "bench/papers/ppipe_topology.h"
#include "bench/study.h"
#include "engine/papers/presets.h"
#include "engine/sim/for_each_job.h"
#include "engine/sim/simulator.h"
#include "planner/papers/ppipe_scenarios.h"

namespace {

using namespace leat;
using bench::mean;
using core::TimeNs;

constexpr cli::Option kOptions[] = {
    {.name = "data",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "scenarios.json, reference_plans.json and profiles, as PPipe's planning data"},
    {.name = "profiles",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "in its place: measured models; what the plans carry by the planners alone"},
    {.name = "classes",
     .type = cli::Type::text,
     .value = "A,B",
     .fallback = "mps:100,mps:43",
     .help = "with --profiles: the faster and the slower class, 4 and 8 of them"},
    {.name = "family",
     .type = cli::Type::text,
     .value = "NAME",
     .fallback = "maf19",
     .help = "scenarios of that family"},
    {.name = "contenders",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "np,dart_r,ppipe,leat",
     .help = "comma-separated: np, dart_r, ppipe, ppipe-append, ppipe-simulator, ppipe-spread, reactive, leat, "
             "leat-packed"},
    {.name = "links",
     .type = cli::Type::choice,
     .choices = "shared|authors",
     .fallback = "shared",
     .help = "shared: all GPUs of a server share one link each way; authors: as in PPipe's authors' simulator"},
    {.name = "rates",
     .type = cli::Type::choice,
     .choices = "exact|whole",
     .fallback = "exact",
     .help = "whole: every DNN's rate cut to whole requests/s, as in that simulator"},
    cli::integer_option("seeds", "3", 1, 100, "paired seeds"),
    cli::real_option("grid", "0.05", 0.005, 0.5, "step of the load factor", "STEP"),
    cli::real_option("lowest", "0.3", 0, 1, "a DNN below it counts as 0", "FACTOR"),
    cli::integer_option("seconds", "30", 1, 3600, "of arrivals in each run"),
    cli::real_option("cv", "1.4", 0.1, 10, "coefficient of variation of the bursty arrivals", "X"),
    {.name = "arrivals",
     .type = cli::Type::choice,
     .choices = "both|poisson|bursty",
     .fallback = "both",
     .help = "which arrivals"},
    cli::integer_option("scenarios", "1000", 1, 1000, "only the first N of the family"),
    cli::integer_option("threads", "2", 1, 256, "scenarios at a time"),
    {.name = "verbose", .help = "a line for every DNN"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "ppipe_study", .summary = "the load PPipe's plans carry under each scheduler", .options = kOptions};

struct Contender {
  const char* name;
  const char* plan;  // whose stored plan
  const char* preset;
  bool chains;  // every pipeline is n chains of one partition a stage (DART)
  bool spread;
};
constexpr Contender kContenders[] = {{"np", "np", "ppipe", false, false},
                                     {"dart_r", "dart_r", "ppipe", true, false},
                                     {"ppipe", "ppipe", "ppipe", false, false},
                                     {"reactive", "ppipe", "reactive", false, false},
                                     {"leat", "ppipe", "leat", false, true},
                                     {"leat-packed", "ppipe", "leat", false, false},
                                     {"ppipe-spread", "ppipe", "ppipe", false, true},
                                     {"ppipe-append", "ppipe", "ppipe-append", false, false},
                                     {"ppipe-simulator", "ppipe", "ppipe-simulator", false, false}};

// ---- one scenario under one contender ----

struct Setting {
  double grid, lowest, cv;  // cv 1: Poisson
  TimeNs length_ns;
  std::uint64_t seeds;
  bool authors_links, whole_rates;
};

struct Carried {  // of one DNN, per seed
  std::vector<double> factor, attainment_at_full;
};

std::vector<double> attainments(const core::Topology& topology, const core::Policy& policy,
                                const planner::Scenario& scenario, double factor, const Setting& setting,
                                std::uint64_t seed) {
  sim::Scenario run;
  run.topology = topology;
  run.policy = policy;
  run.seed = seed;
  run.streams.clear();
  std::vector<std::vector<sim::Arrival>> lists;
  const auto& full = scenario.plans.at("ppipe");
  for (std::uint32_t d = 0; d < topology.applications.size(); ++d) {
    run.streams.push_back({.application = d, .depth = 16384});
    const std::uint64_t key = seed * 1000 + d * 17;
    const double exact = full[d].rps * factor, rate = setting.whole_rates ? std::floor(exact) : exact;
    lists.push_back(sim::to_stream(setting.cv == 1 ? sim::poisson(rate, setting.length_ns, key)
                                                   : sim::gamma(rate, setting.cv, setting.length_ns, key),
                                   d));
  }
  run.arrivals = sim::merged(lists);
  const sim::Outcomes out = sim::run(run);
  std::vector<double> in_time;
  for (std::uint32_t d = 0; d < topology.applications.size(); ++d) {
    const core::RequestCounters& c = out.counters.streams[d];
    in_time.push_back(
        c.submitted == 0 ? 1 : static_cast<double>(c.of(Outcome::completed)) / static_cast<double>(c.submitted));
  }
  return in_time;
}

std::vector<Carried> carried(const planner::Scenario& scenario, const Contender& contender, const Setting& setting) {
  const core::Topology topology = bench::ppipe_topology(scenario, {.plan = contender.plan,
                                                                   .chains = contender.chains,
                                                                   .spread = contender.spread,
                                                                   .authors_links = setting.authors_links});
  if (const std::string text = topology.problem(); !text.empty()) {
    std::fprintf(stderr, "ppipe_study: %s, %s: %s\n", scenario.id.c_str(), contender.name, text.c_str());
    std::exit(cli::kBadInput);
  }
  core::Policy policy;
  if (!papers::preset(contender.preset, policy)) std::abort();
  std::vector<Carried> out(topology.applications.size());
  for (std::uint64_t seed = 1; seed <= setting.seeds; ++seed) {
    std::vector<double> best(out.size(), 0);
    for (int step = 0;; ++step) {
      const double factor = 1 - step * setting.grid;
      if (factor < setting.lowest - 1e-9) break;
      const std::vector<double> in_time = attainments(topology, policy, scenario, factor, setting, seed);
      bool all = true;
      for (std::size_t d = 0; d < out.size(); ++d) {
        if (step == 0) out[d].attainment_at_full.push_back(in_time[d]);
        if (best[d] == 0 && in_time[d] >= 0.99) best[d] = factor;
        all = all && best[d] > 0;
      }
      if (all) break;
    }
    for (std::size_t d = 0; d < out.size(); ++d) out[d].factor.push_back(best[d]);
  }
  return out;
}

// What the figures are measured against: PPipe's own (section 7) for its authors' rules, and bars for ours.
struct Bar {
  const char *links, *family, *load, *contender;
  double grid;  // of the study; 0: any
  double min, max;
  const char* meaning;
};
constexpr Bar kBars[] = {
    {"shared", "maf19", "poisson", "ppipe", 0.05, 0.945, 0.985, "within .02 of the paper's .965"},
    {"shared", "maf19", "poisson", "leat", 0.05, 0.970, 1, "at least .970"},
    {"shared", "maf19", "bursty", "leat", 0.05, 0.92, 1, "at least .920"},
    {"shared", "maf19", "poisson", "leat", 0.01, 0.983, 1, "at least .983 on the fine grid"},
    {"shared", "maf19", "bursty", "leat", 0.01, 0.928, 1, "at least .928 on the fine grid"},
    {"shared", "ablation", "poisson", "reactive", 0, 0.68, 0.74, "within .03 of the paper's .71"},
    {"authors", "maf19", "poisson", "ppipe-simulator", 0.05, 0.945, 0.985, "within .02 of the paper's .965"},
    {"authors", "maf19", "bursty", "ppipe-simulator", 0.05, 0.883, 0.923, "within .02 of the paper's .903"},
};

Json bars(const Json& figures, const std::string& links, const std::string& family, double grid) {
  Json out = Json::array();
  const auto judge = [&](const std::string& name, const std::string& meaning, double value, bool reached) {
    out.push_back({{"figure", name}, {"bar", meaning}, {"value", value}, {"reached", reached}});
  };
  for (const Bar& bar : kBars) {
    if (links != bar.links || family != bar.family || (bar.grid > 0 && std::abs(bar.grid - grid) > 1e-9)) continue;
    if (!figures.contains(bar.load) || !figures[bar.load].contains(bar.contender)) continue;
    const auto value = figures[bar.load][bar.contender].get<double>();
    judge(std::string(bar.load) + "." + bar.contender, bar.meaning, value, value >= bar.min && value <= bar.max);
  }
  for (const auto& [load, of] : figures.items()) {
    for (const char* other : {"ppipe", "ppipe-simulator"}) {
      if (!of.contains("leat") || !of.contains(other)) continue;
      const double more = of["leat"].get<double>() - of[other].get<double>();
      judge(load + ".leat - " + other, "above it on the same seeds", more, more > 0);
    }
  }
  return out;
}

}  // namespace

namespace {

int plan_profiles(const cli::Arguments& args) {
  const std::string classes = args.text("classes");
  const std::size_t comma = classes.find(',');
  if (comma == std::string::npos) return cli::fail("ppipe_study", "--classes: write two classes, A,B");
  const auto plans = bench::plans_of_profiles(
      args.text("profiles"),
      {.fast_class = classes.substr(0, comma), .slow_class = classes.substr(comma + 1), .fast = 4, .slow = 8});
  if (!plans) return cli::fail("ppipe_study", plans.error());
  const cli::JsonOutput output(args);
  if (const int failed = output.write(plans->dump(1)); failed != 0 || output.alone()) return failed;
  for (const auto& [name, plan] : plans->items())
    std::printf("%-8s %10.1f requests/s of each model, gap %.2g\n", name.c_str(), plan.at("rps").get<double>(),
                plan.at("gap").get<double>());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  if (args.given("data") == args.given("profiles"))
    return cli::fail("ppipe_study", "give one of --data and --profiles");
  if (args.given("profiles")) return plan_profiles(args);
  const auto set = planner::read_scenarios(args.text("data"));
  if (!set) return cli::fail("ppipe_study", set.error());
  std::vector<const planner::Scenario*> scenarios;
  for (const planner::Scenario& s : set->scenarios) {
    if (s.family == args.text("family") && s.plans.count("ppipe") != 0 &&
        static_cast<std::int64_t>(scenarios.size()) < args.integer("scenarios"))
      scenarios.push_back(&s);
  }
  if (scenarios.empty())
    return cli::fail("ppipe_study",
                     "no scenario of family '" + args.text("family") + "' with a stored plan; see --family");
  std::vector<const Contender*> contenders;
  std::string list = args.text("contenders") + ",";
  for (std::size_t from = 0, to = list.find(','); to != std::string::npos; from = to + 1, to = list.find(',', from)) {
    const std::string name = list.substr(from, to - from);
    const auto* it = std::find_if(std::begin(kContenders), std::end(kContenders),
                                  [&](const Contender& c) { return name == c.name; });
    if (it == std::end(kContenders))
      return cli::fail("ppipe_study", "unknown contender '" + name + "'; --help lists them");
    contenders.push_back(it);
  }
  struct Load {
    const char* name;
    double cv;
  };
  std::vector<Load> loads;
  if (args.text("arrivals") != "bursty") loads.push_back({"poisson", 1});
  if (args.text("arrivals") != "poisson") loads.push_back({"bursty", args.real("cv")});

  struct Job {
    std::size_t load, contender, scenario;
    std::vector<Carried> result;
  };
  std::vector<Job> jobs;
  for (std::size_t l = 0; l < loads.size(); ++l) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      for (std::size_t s = 0; s < scenarios.size(); ++s) jobs.push_back({l, c, s, {}});
    }
  }
  {
    cli::Progress progress("ppipe study", jobs.size(), "runs");
    std::mutex mutex;
    sim::for_each_job(jobs.size(), static_cast<std::size_t>(args.integer("threads")), [&](std::size_t i) {
      const Setting setting{args.real("grid"),
                            args.real("lowest"),
                            loads[jobs[i].load].cv,
                            args.integer("seconds") * 1'000'000'000,
                            static_cast<std::uint64_t>(args.integer("seeds")),
                            args.text("links") == "authors",
                            args.text("rates") == "whole"};
      jobs[i].result = carried(*scenarios[jobs[i].scenario], *contenders[jobs[i].contender], setting);
      const std::lock_guard lock(mutex);
      progress.add(1);
    });
  }

  const cli::JsonOutput output(args);
  Json json = {{"family", args.text("family")},  {"scenarios", scenarios.size()},
               {"seeds", args.integer("seeds")}, {"grid", args.real("grid")},
               {"cv", args.real("cv")},          {"load_1.0", "the rate of PPipe's own plan"},
               {"links", args.text("links")},    {"rates", args.text("rates")}};
  for (std::size_t l = 0; l < loads.size(); ++l) {
    if (!output.alone())
      std::printf(
          "%s, CV %.1f, %s links: mean largest load factor with >= 99 %% in time (spread over seeds), attainment at "
          "load 1.0\n",
          loads[l].name, loads[l].cv, args.text("links").c_str());
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      std::vector<double> at_full;
      std::vector<std::vector<double>> by_seed(static_cast<std::size_t>(args.integer("seeds")));
      for (const Job& job : jobs) {
        if (job.load != l || job.contender != c) continue;
        for (std::size_t d = 0; d < job.result.size(); ++d) {
          for (std::size_t s = 0; s < by_seed.size(); ++s) by_seed[s].push_back(job.result[d].factor[s]);
          at_full.push_back(mean(job.result[d].attainment_at_full));
          if (args.flag("verbose") && !output.alone()) {
            std::printf("    %-22s %-32.32s %.3f  at 1.0: %.4f\n", scenarios[job.scenario]->id.c_str(),
                        scenarios[job.scenario]->problem.dnns[d].profile->model.c_str(), mean(job.result[d].factor),
                        at_full.back());
          }
        }
      }
      std::vector<double> means;
      for (const auto& v : by_seed) means.push_back(mean(v));
      const auto [low, high] = std::minmax_element(means.begin(), means.end());
      json["mean_load_factor"][loads[l].name][contenders[c]->name] = mean(means);
      json["spread"][loads[l].name][contenders[c]->name] = {*low, *high};
      json["attainment_at_full_load"][loads[l].name][contenders[c]->name] = mean(at_full);
      if (!output.alone())
        std::printf("  %-12s %.4f  (%.4f to %.4f)  %.4f\n", contenders[c]->name, mean(means), *low, *high,
                    mean(at_full));
    }
  }
  json["bars"] = bars(json["mean_load_factor"], args.text("links"), args.text("family"), args.real("grid"));
  if (!output.alone()) {
    for (const auto& bar : json["bars"]) {
      std::printf("bar %-32s %-32s %.4f  %s\n", bar["figure"].get<std::string>().c_str(),
                  bar["bar"].get<std::string>().c_str(), bar["value"].get<double>(),
                  bar["reached"].get<bool>() ? "reached" : "NOT reached");
    }
  }
  return output.write(json.dump(1));
}
