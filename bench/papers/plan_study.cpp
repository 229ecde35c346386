// Random applications planned by Leat's rules, beside no plan at all and beside partitions of their own, all served by
// the daemon's own core in the simulator.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "bench/study.h"
#include "engine/core/policy/policy_settings.h"
#include "engine/sim/for_each_job.h"
#include "engine/sim/kept_rate.h"
#include "engine/sim/workload/random.h"
#include "planner/build/build_plan.h"
#include "tools/base/text/quantile.h"
#include "tools/plan/tried_plan.h"

namespace {

using namespace leat;

constexpr std::uint32_t kBatch = 16;
constexpr double kClose = 1.1;  // ratios within this of 1 are means of several draws
constexpr double kAbove = 4;    // of the plan's promise, where own rates are looked for

constexpr cli::Option kOptions[] = {
    cli::integer_option("instances", "200", 1, 100000, "random applications, each on a host of its own"),
    cli::integer_option("first", "0", 0, 1e9, "number of the first of them"),
    cli::integer_option("requests", "8000", 100, 1e6, "of a simulation, about"),
    cli::integer_option("seed", "1", 0, 1e9, "of the instances"),
    cli::integer_option("threads", "2", 1, 256, "instances at a time"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "plan_study",
    .summary = "what Leat's plans carry, beside no plan and beside partitions of their own",
    .description =
        "Chains of 1 to 5 modules on 1 to 16 partitions of 1 to 3 classes, SLOs of 1.5 to 15 times the fastest chain. "
        "Plan and no plan get the same Poisson requests at the plan's promise; and each kind the rate at which 99 % of "
        "its own are in time.",
    .options = kOptions};

struct Instance {
  planner::PlanRequest request;
  core::Topology unplanned;
};

Instance draw(std::uint64_t seed) {
  sim::Random random(seed);
  const auto between = [&](double low, double high) { return low + (high - low) * random.uniform(); };
  Instance out;
  planner::PlanRequest& r = out.request;
  const auto classes = 1 + random.below(3), partitions = std::max<std::uint64_t>(classes, 1 + random.below(16)),
             modules = 1 + random.below(5);
  std::vector<double> speed;
  for (std::uint64_t c = 0; c < classes; ++c) speed.push_back(c == 0 ? 1 : between(.25, 1));
  for (std::uint64_t p = 0; p < partitions; ++p) {
    const std::uint64_t c = p < classes ? p : random.below(classes);
    planner::HostPartition& h = r.host.partitions.emplace_back();
    h.partition.name = "p" + std::to_string(p);
    h.partition.partition_class = "c" + std::to_string(c);
    h.partition.device = static_cast<std::uint32_t>(p);
  }
  planner::Application& app = r.applications.emplace_back();
  app.name = "a";
  double chain_ms = 0;
  for (std::uint64_t m = 0; m < modules; ++m) {
    planner::Module& module = app.modules.emplace_back();
    module.name = module.model = "m" + std::to_string(m);
    if (m > 0) module.after = {static_cast<std::uint32_t>(m - 1)};
    const double fixed_ms = std::exp(between(std::log(1.0), std::log(30.0))), item_ms = fixed_ms * between(.03, .8);
    chain_ms += fixed_ms + item_ms;
    planner::Profile& profile = r.profiles.emplace_back();
    profile.model = module.model;
    for (std::uint64_t c = 0; c < classes; ++c) {
      for (std::uint32_t b = 1; b <= kBatch; ++b) {
        const auto ns = static_cast<std::int64_t>((fixed_ms + item_ms * b) / speed[c] * 1e6);
        profile.rows.push_back({"c" + std::to_string(c), 1, b, {{.p50_ns = ns, .p99_ns = ns}}});
      }
    }
  }
  app.slo_ns = static_cast<std::int64_t>(chain_ms * std::exp(between(std::log(1.5), std::log(15.0))) * 1e6);
  // What leatd deploys without a plan: for each module and class a route over all its partitions.
  planner::Plan all;
  for (const planner::HostPartition& h : r.host.partitions) all.partitions.push_back(h.partition);
  for (std::uint32_t m = 0; m < modules; ++m) {
    for (std::uint64_t c = 0; c < classes; ++c) {
      planner::Stage stage;
      for (std::uint32_t p = 0; p < partitions; ++p)
        if (all.partitions[p].partition_class == "c" + std::to_string(c)) stage.pool.push_back(p);
      for (const planner::ProfileRow& row : r.profiles[m].rows)
        if (row.partition_class == "c" + std::to_string(c)) stage.latency_by_batch.push_back(row.blocks[0]);
      all.routes.push_back({0, m, kBatch, 0, {std::move(stage)}});
    }
  }
  out.unplanned = core::Topology::from(all, r.applications);
  return out;
}

struct Found {
  bool feasible = false, dedicated = false, lowered = false, changed = false;
  std::size_t modules = 0, partitions = 0, classes = 0;
  double promise = 0, planned = 0, unplanned = 0;  // in time at the promise
  double over_dedicated = 0;                       // own rates
  double first = 1;                                // in time at what was promised before it was tried
};

Found measure(const Instance& instance, const core::Policy& policy, std::uint64_t requests) {
  Found out;
  out.modules = instance.request.applications[0].modules.size();
  out.partitions = instance.request.host.partitions.size();
  auto outcome = planner::build_plan(instance.request);
  if (!outcome.ok() || !outcome->solution.feasible) return out;
  // The dedicated plan: where it is not the first choice it is among the others.
  planner::PlanFile dedicated;
  double dedicated_z = 0;
  const auto is_dedicated = [](const planner::PlanFile& f) { return !f.plan.budget_ns.empty(); };
  if (is_dedicated(outcome->file)) dedicated = outcome->file, dedicated_z = outcome->solution.certificate.objective;
  for (const planner::OtherPlan& o : outcome->others)
    if (is_dedicated(o.file)) dedicated = o.file, dedicated_z = o.z;
  const planner::Trial trial = planner::try_plan(instance.request, *outcome, requests);
  out.feasible = trial.kept > 0;
  if (!out.feasible) return out;
  out.lowered = trial.kept < 1;
  out.first = trial.promised;
  out.promise = outcome->solution.certificate.objective;
  const core::Topology t = core::Topology::from(outcome->file.plan, outcome->file.applications);
  const double rate[] = {out.promise};
  // Other draws than those that it was chosen and lowered on.
  const sim::KeptRateOptions options{.requests = requests, .max = kAbove, .seed = 2};
  out.planned = sim::worst_in_time(t, policy, rate, 1, options);
  out.unplanned = sim::worst_in_time(instance.unplanned, policy, rate, 1, options);
  if (dedicated_z <= 0) return out;
  out.dedicated = true;
  const core::Topology other = core::Topology::from(dedicated.plan, dedicated.applications);
  double ours = 0, theirs = 0;
  const auto add = [&](std::uint64_t draw, double resolution) {
    const sim::KeptRateOptions o{.requests = requests, .max = kAbove, .resolution = resolution, .seed = draw};
    const double own[] = {dedicated_z};
    theirs += dedicated_z * sim::kept_rate(other, policy, own, o).part;
    ours += out.promise * sim::kept_rate(t, policy, rate, o).part;
  };
  add(2, .01);
  // One draw of a rate is off by some per cent: what may be no more than the dedicated is looked at again.
  if (theirs > 0 && ours < kClose * theirs && ours > theirs / kClose) {
    ours = theirs = 0;
    for (const std::uint64_t draw : {2, 3, 4, 5}) add(draw, .003);
  }
  out.over_dedicated = theirs > 0 ? ours / theirs : 0;
  return out;
}

int run(const cli::Arguments& args) {
  core::Policy policy;
  (void)core::preset("leat", policy);
  const auto n = static_cast<std::size_t>(args.integer("instances"));
  const auto requests = static_cast<std::uint64_t>(args.integer("requests")),
             seed = static_cast<std::uint64_t>(args.integer("seed")),
             first = static_cast<std::uint64_t>(args.integer("first"));
  std::vector<Found> found(n);
  std::mutex lock;
  cli::Progress progress("plan_study", n, "instances");
  sim::for_each_job(n, static_cast<std::size_t>(args.integer("threads")), [&](std::size_t i) {
    found[i] = measure(draw(seed * 100'000 + first + i), policy, requests);
    const std::scoped_lock held(lock);
    progress.add(1);
  });
  std::vector<double> below, ratio, kept;
  std::size_t feasible = 0, lowered = 0, kept_promises = 0, worse = 0;
  double lowest = 1e9;
  for (const Found& f : found) {
    if (!f.feasible) continue;
    ++feasible;
    lowered += f.lowered ? 1 : 0;
    kept.push_back(100 * f.planned);
    kept_promises += f.planned >= .99 - .002 ? 1 : 0;
    below.push_back(100 * (f.unplanned - f.planned));
    worse += f.unplanned > f.planned + .002 ? 1 : 0;
    if (f.over_dedicated > 0) lowest = std::min(lowest, f.over_dedicated);
    if (f.over_dedicated > 0 && f.modules > 1) ratio.push_back(f.over_dedicated);
  }
  const std::vector<bench::Bar> bars = {
      {.name = "no plan above the plan, points, at most", .value = bench::max_of(below), .bar = .2, .at_least = false},
      {.name = "over dedicated at own 99 % rates, median of two modules or more",
       .value = bench::median(ratio),
       .bar = 1.13},
      {.name = "over dedicated at own 99 % rates, least", .value = lowest > 1e8 ? 0 : lowest, .bar = .99}};
  const cli::JsonOutput json(args);
  if (!json.alone()) {
    std::printf(
        "%zu of %zu applications planned, %zu promises lowered; in time at the promise on other draws: median %.2f %%, "
        "least %.2f %%; "
        "below 98.8 %%: %zu\n",
        feasible, n, lowered, bench::median(kept), bench::min_of(kept), feasible - kept_promises);
    std::printf("no plan above it by more than .2 points in %zu, at most %.2f points\n", worse, bench::max_of(below));
    std::printf("over dedicated (%zu with two modules or more): p10 %.2f, median %.2f, p90 %.2f, least of all %.3f\n",
                ratio.size(), quantile(ratio, .1), bench::median(ratio), quantile(ratio, .9), lowest);
    bench::print(bars);
  }
  Json out = {{"planned", feasible},
              {"instances", n},
              {"lowered", lowered},
              {"in_time_at_promise", {{"median", bench::median(kept)}, {"least", bench::min_of(kept)}}},
              {"no_plan_above_points", bench::max_of(below)},
              {"no_plan_above", worse},
              {"over_dedicated",
               {{"p10", quantile(ratio, .1)},
                {"median", bench::median(ratio)},
                {"p90", quantile(ratio, .9)},
                {"least", lowest > 1e8 ? 0 : lowest}}},
              {"bars", bench::to_json(bars)}};
  for (std::size_t i = 0; i < n; ++i)
    out["instance"].push_back({{"feasible", found[i].feasible},
                               {"modules", found[i].modules},
                               {"partitions", found[i].partitions},
                               {"promise", found[i].promise},
                               {"lowered", found[i].lowered},
                               {"planned", found[i].planned},
                               {"unplanned", found[i].unplanned},
                               {"over_dedicated", found[i].over_dedicated}});
  return json.write(out.dump(1));
}

}  // namespace

int main(int argc, char** argv) { return run(cli::parse_or_exit(kCommand, argc, argv)); }
