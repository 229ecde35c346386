// ELSA's evaluation on analytic models: partitions of 7-slice GPUs cut homogeneously, at random, by PARIS and by the
// exact layout search; requests of log-normal size 1 to 32 in a Poisson process; SLA 1.5 times the largest partition's
// latency at size 32. `served` is the planner's measure of a layout: 0 where some size cannot meet the SLA on any of
// its partitions; the 95 % may still be met there, so every layout is tried. Latency-bounded throughput: the highest
// rate at which 95 % of all requests are answered within the SLA (p95 <= SLA; what is dropped or late misses it).
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/study.h"
#include "engine/core/model/topology.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"
#include "planner/io/profile_io.h"
#include "planner/mig/layout.h"
#include "planner/mig/measured_sizes.h"
#include "planner/mig/paris.h"
#include "planner/papers/layouts.h"
#include "planner/test/paris_workloads.h"

namespace {

using namespace leat;
using namespace leat::planner;

constexpr cli::Option kOptions[] = {
    cli::integer_option("seed", "1", 0, 1e15, "of arrivals, sizes and the random layout"),
    cli::integer_option("gpus", "4", 1, 8, "how many 7-slice GPUs"),
    cli::integer_option("requests", "4000", 200, 1e6, "per simulated point"),
    {.name = "model",
     .type = cli::Type::choice,
     .value = "NAME",
     .choices = "all|light|medium|heavy",
     .fallback = "all",
     .help = "which model"},
    {.name = "profile",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "a measured model in their place: classes mig:NAME of an A100-40, or mps:14, 29, 43, 57 and 100; batches "
             "to 32"},
    {.name = "policies",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "fifs,fifs:place=random,elsa,leat,fifs:place=random:drop=expired,elsa:drop=expired,"
                 "leat-single",
     .help = "presets with settings (leat-single), separated by commas"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "elsa_study",
    .summary = "latency-bounded throughput of fifs, elsa and leat on homogeneous, random and PARIS partitionings",
    .options = kOptions};

constexpr double kSigma = 0.9, kMedian = 3.0;  // of log(size), and the size itself
constexpr std::uint32_t kLargest = 32;
constexpr double kLoads[] = {0.3, 0.5, 0.7, 0.8, 0.9, 1.0};  // of the layout's served load

struct Server {
  std::string name;
  SizeCounts counts;
  double served_rps = 0;  // the planner's measure: no queueing
};

struct Bench {
  std::vector<core::NamedPolicy> policies;
  std::vector<std::vector<double>> latency_s;  // [size][batch - 1]
  std::vector<double> compute;                 // of sizes
  double sla_s = 0;
  std::uint64_t seed = 1;
  std::uint32_t requests = 0;
};

core::Topology topology_of(const Bench& bench, const Server& server) {
  core::Topology t;
  core::ModuleSpec module{};
  for (std::size_t k = 0; k < server.counts.size(); ++k) {
    if (server.counts[k] == 0) continue;
    core::RouteSpec route{};
    route.batch = kLargest;
    core::StageSpec stage{};
    for (std::uint32_t b = 1; b <= kLargest; ++b) {
      stage.latency.p50_ns.push_back(static_cast<core::TimeNs>(1e9 * bench.latency_s[k][b - 1]));
      stage.latency.p99_ns.push_back(stage.latency.p50_ns.back());
    }
    for (std::uint32_t i = 0; i < server.counts[k]; ++i) {
      stage.pool.push_back(static_cast<core::PartitionId>(t.partitions.size()));
      core::PartitionSpec partition{};
      partition.size = partition.price = bench.compute[k];
      t.partitions.push_back(partition);
    }
    route.stages.push_back(std::move(stage));
    module.routes.push_back(static_cast<core::RouteId>(t.routes.size()));
    t.routes.push_back(std::move(route));
  }
  t.modules.push_back(module);
  core::ApplicationSpec application{};
  application.slo_ns = static_cast<core::TimeNs>(1e9 * bench.sla_s);
  application.modules = {0};
  t.applications.push_back(application);
  return t;
}

struct Point {
  double in_time = 0;
  double p95_s = 0;  // of what was answered with a result
};

Point simulate(const Bench& bench, const Server& server, const core::Policy& policy, double rate_rps) {
  sim::Scenario scenario;
  scenario.topology = topology_of(bench, server);
  scenario.policy = policy;
  scenario.limits.requests = 1u << 14;
  scenario.limits.tasks = 1u << 14;
  scenario.limits.actions = 1u << 15;
  scenario.streams[0].depth = 1u << 14;
  scenario.drain_ns = static_cast<sim::TimeNs>(3600e9);
  const auto length = static_cast<sim::TimeNs>(1e9 * bench.requests / rate_rps);
  scenario.arrivals = sim::to_stream(sim::poisson(rate_rps, length, bench.seed));
  for (std::size_t i = 0; i < scenario.arrivals.size(); ++i)
    scenario.arrivals[i].items = sim::lognormal_items(bench.seed * 1'000'003 + i, kMedian, kSigma, kLargest);
  std::vector<double> latency_s;
  scenario.on_answer = [&](const sim::AnswerEvent& e) {
    if (e.outcome == Outcome::completed || e.outcome == Outcome::late)
      latency_s.push_back(static_cast<double>(e.at_ns - scenario.arrivals[e.arrival].at_ns) * 1e-9);
  };
  const sim::Outcomes outcomes = sim::run(scenario);
  std::sort(latency_s.begin(), latency_s.end());
  return {
      outcomes.goodput(),
      latency_s.empty() ? 0 : latency_s[static_cast<std::size_t>(0.95 * static_cast<double>(latency_s.size() - 1))]};
}

// More than any policy can do: every partition runs full batches of its best size all the time.
double max_rps(const Bench& bench, const Server& server) {
  double items = 0, mean = 0;
  for (std::size_t k = 0; k < server.counts.size(); ++k) {
    double best = 0;
    for (std::uint32_t b = 1; b <= kLargest; ++b) best = std::max(best, b / bench.latency_s[k][b - 1]);
    items += server.counts[k] * best;
  }
  constexpr int kDraws = 10000;
  for (int i = 0; i < kDraws; ++i)
    mean += static_cast<double>(
                sim::lognormal_items(bench.seed + static_cast<std::uint64_t>(i), kMedian, kSigma, kLargest)) /
            kDraws;
  return items / mean;
}

double bounded_throughput(const Bench& bench, const Server& server, const core::Policy& policy) {
  double low = 0, high = max_rps(bench, server);
  for (int i = 0; i < 9; ++i) {
    const double middle = (low + high) / 2;
    (simulate(bench, server, policy, middle).in_time >= 0.95 ? low : high) = middle;
  }
  return low;
}

// Shares of the sizes as the simulator draws them.
std::vector<double> drawn_shares(std::uint64_t seed) {
  std::vector<double> share(kLargest);
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i)
    share[sim::lognormal_items(seed + static_cast<std::uint64_t>(i), kMedian, kSigma, kLargest) - 1] += 1.0 / kDraws;
  double sum = 0;
  for (double p : share) sum += p;
  for (double& p : share) p /= sum;
  return share;
}

// The least ratio of `ours` to the best of `others` over all cells. None where one of them was not run.
std::vector<bench::Bar> min_ratio(const Json& models, const char* name, const std::string& ours,
                                  const std::vector<std::string>& others, double bar) {
  double min = 1e9;
  std::string where = "no cell";
  for (const auto& [model, study] : models.items()) {
    for (const auto& [layout, row] : study["partitionings"].items()) {
      const auto& rps = row["bounded_rps"];
      if (!rps.contains(ours)) return {};
      double best = 0;
      for (const std::string& other : others) {
        if (!rps.contains(other)) return {};
        best = std::max(best, rps[other].get<double>());
      }
      if (best <= 0) continue;
      const double ratio = rps[ours].get<double>() / best;
      if (ratio >= min) continue;
      min = ratio;
      where = model + ", " + layout;
    }
  }
  return {{.name = name, .value = min, .bar = bar, .at_least = true, .where = where}};
}

// As each is; then one request at a time for all, each dropped when its deadline has passed.
std::vector<bench::Bar> bars_of(const Json& models) {
  std::vector<bench::Bar> bars =
      min_ratio(models, "leat over the better of fifs and elsa, least ratio of latency-bounded throughput", "leat",
                {"fifs", "fifs:place=random", "elsa"}, 1);
  const std::vector<bench::Bar> alike =
      min_ratio(models, "the same, single requests and the same drop rule on both sides", "leat-single",
                {"fifs:place=random:drop=expired", "elsa:drop=expired"}, 1.05);
  bars.insert(bars.end(), alike.begin(), alike.end());
  return bars;
}

// What is asked of a server, and the same as PARIS takes it.
struct Model {
  SizeDemand demand;
  ParisProblem problem;
};

Model analytic(const AnalyticModel& model, const LayoutSpace& space, std::uint32_t gpus, std::uint64_t seed) {
  const std::vector<double> share = drawn_shares(seed), compute = space.compute_of_sizes();
  return {size_demand(model, share, compute, 1.5), paris_problem(model, share, compute, 7.0 * gpus)};
}

// With the same rules, by a profile of the geometry's sizes, or of shares in their place.
Result<Model> measured(const Profile& profile, const MigGeometry& geometry, const std::vector<std::uint32_t>& sizes,
                       std::uint32_t gpus, std::uint64_t seed) {
  Model out;
  out.demand.batch_share = out.problem.batch_share = drawn_shares(seed);
  out.problem.total_compute = 7.0 * gpus;
  for (const std::uint32_t s : sizes) {
    const MigProfile& size = geometry.profiles[s];
    const auto latency = class_latency_s(profile, class_for(profile, geometry, size), kLargest);
    if (!latency) return Error{latency.error()};
    out.problem.sizes.push_back(measured_size(size.compute, *latency));
    out.demand.latency_s.push_back(*latency);
  }
  out.demand.sla_s = 1.5 * out.demand.latency_s.back().back();
  return out;
}

Json study_model(const Model& model, const LayoutSpace& space, Bench bench) {
  const SizeDemand& demand = model.demand;
  bench.latency_s = demand.latency_s;
  bench.compute = space.compute_of_sizes();
  bench.sla_s = demand.sla_s;
  std::vector<Server> servers;
  for (std::uint32_t k = 0; k < bench.compute.size(); ++k) {
    const LayoutChoice same = homogeneous_layout(space, k, demand);
    servers.push_back(
        {"GPU(" + std::to_string(static_cast<int>(bench.compute[k])) + ")", same.counts, same.served_rps});
  }
  const auto add = [&](const char* name, const LayoutChoice& c) { servers.push_back({name, c.counts, c.served_rps}); };
  add("random", random_layout(space, bench.seed, demand));
  const ParisResult wanted = paris(model.problem);
  add("paris", space.nearest_layout(wanted.instances, demand));
  add("exact", space.best_layout(demand));
  Json out = {{"sla_ms", 1e3 * bench.sla_s}};
  for (const Server& server : servers) {
    Json row = {{"counts", server.counts}, {"served_rps", server.served_rps}};
    for (const auto& [policy, settings] : bench.policies) {
      row["bounded_rps"][policy] = bounded_throughput(bench, server, settings);
      for (double load : kLoads) {
        if (server.served_rps <= 0) break;
        const Point p = simulate(bench, server, settings, load * server.served_rps);
        row["p95_over_sla"][policy].push_back(p.p95_s / bench.sla_s);
        row["in_time"][policy].push_back(p.in_time);
      }
    }
    out["partitionings"][server.name] = row;
  }
  return out;
}

void print(const std::string& model, const Json& study) {
  std::printf(
      "%s, SLA %.1f ms: latency-bounded throughput, requests/s; p95 over the SLA at 0.7 and 0.9 of the served load\n",
      model.c_str(), study["sla_ms"].get<double>());
  std::printf("  %-8s %-18s %9s |", "layout", "counts", "capacity");
  const auto width = [](const std::string& policy) {
    return static_cast<int>(std::max<std::size_t>(8, policy.size()));
  };
  const auto& first = study["partitionings"].items().front().value["bounded_rps"];
  for (const auto& [policy, rps] : first.items()) std::printf(" %*s", width(policy), policy.c_str());
  for (const auto& [policy, rps] : first.items()) std::printf(" | %*s", std::max(11, width(policy)), policy.c_str());
  std::printf("\n");
  for (const auto& [name, row] : study["partitionings"].items()) {
    std::printf("  %-8s %-18s %9.1f |", name.c_str(), row["counts"].dump().c_str(), row["served_rps"].get<double>());
    for (const auto& [policy, rps] : row["bounded_rps"].items())
      std::printf(" %*.1f", width(policy), rps.get<double>());
    for (const auto& [policy, rps] : row["bounded_rps"].items()) {
      const int each = (std::max(11, width(policy)) - 1) / 2;
      if (!row.contains("p95_over_sla"))
        std::printf(" | %*s %*s", each, "-", each, "-");
      else
        std::printf(" | %*.2f %*.2f", each, row["p95_over_sla"][policy][2].get<double>(), each,
                    row["p95_over_sla"][policy][4].get<double>());
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto gpus = static_cast<std::uint32_t>(args.integer("gpus"));
  Bench bench;
  Result<std::vector<core::NamedPolicy>> policies = core::read_policies(args.text("policies"), papers::study_presets());
  if (!policies.ok()) return cli::fail(kCommand.name, "--policies: " + policies.error());
  bench.policies = std::move(*policies);
  bench.seed = static_cast<std::uint64_t>(args.integer("seed"));
  bench.requests = static_cast<std::uint32_t>(args.integer("requests"));
  const MigGeometry& geometry = *mig_table("A100-40");
  const std::vector<std::uint32_t> sizes = profiles_for(geometry, 0);
  const LayoutSpace space(geometry, sizes, gpus);
  Json out = {{"seed", bench.seed}, {"gpus", gpus}, {"requests", bench.requests}, {"loads", kLoads}};
  if (args.given("profile")) {
    const auto profile = read_profile(args.text("profile"));
    if (!profile) return cli::fail(kCommand.name, profile.error());
    const auto model = measured(*profile, geometry, sizes, gpus, bench.seed);
    if (!model) return cli::fail(kCommand.name, model.error());
    out["models"][profile->model] = study_model(*model, space, bench);
  } else {
    cli::Progress progress("elsa study", analytic_models().size(), "models");
    for (const AnalyticModel& model : analytic_models()) {
      if (args.text("model") == "all" || args.text("model") == model.name)
        out["models"][model.name] = study_model(analytic(model, space, gpus, bench.seed), space, bench);
      progress.add(1);
    }
  }
  const std::vector<bench::Bar> bars = bars_of(out["models"]);
  out["bars"] = bench::to_json(bars);
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("seed %llu, %u GPUs of 7 slices, sizes 1 to 32 log-normal (median %.0f, sigma %.1f)\n",
              static_cast<unsigned long long>(bench.seed), gpus, kMedian, kSigma);
  for (const auto& [name, study] : out["models"].items()) print(name, study);
  bench::print(bars);
  return 0;
}
