// Harpagon's dispatch in the real scheduler: the observed worst latency of single modules under tc (whole batches in
// ratio order) against Theorem 1's d + b/w, and under rr (single requests in turn) against 2d. Requests come evenly
// spaced.
//   tc: at the module's own rate, with the bound as SLO. Where the plan adds dummies, a batch that is not full at its
//   last safe
//       moment is sent short: padding on demand is what its dummies are. What is above the bound is also told in gaps
//       between requests, since the theorem reads requests as a fluid.
//   rr: the plans of one tuple only (2d is a worst case of equal machines), at the rate with dummies, and only full
//   batches.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bench/study.h"
#include "engine/core/model/topology.h"
#include "engine/papers/harpagon.h"
#include "engine/sim/simulator.h"
#include "planner/harpagon/plan.h"
#include "planner/test/harpagon_workloads.h"
#include "planner/test/uniform.h"

namespace {

using namespace leat;
using namespace leat::planner;
using bench::mean;
using bench::min_of, bench::max_of;

constexpr cli::Option kOptions[] = {
    cli::integer_option("seed", "1", 0, 1e15, "of the workloads"),
    cli::integer_option("workloads", "250", 1, 1e5, "how many"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "dispatch_study",
    .summary = "worst latency under Harpagon's batch dispatch and under round-robin, against their bounds",
    .options = kOptions};

constexpr double kSlack = 1e-6;  // seconds: times are whole nanoseconds

struct Case {
  HarpagonProblem problem;  // one module
  ModuleSchedule schedule;
  double round_robin_bound_s = 0;  // 2 d of the slowest batch
};

// A module of a generated workload with a budget drawn between its quickest and its cheapest schedule.
Case draw(std::uint64_t seed, std::uint32_t index) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + index + 1);
  const HarpagonProblem workload = harpagon_workload(seed, index);
  Case c;
  c.problem.modules = {workload.modules[random() % workload.modules.size()]};
  HarpagonModule& module = c.problem.modules[0];
  module.after.clear();
  const ModuleFrontier frontier(module.configurations, module.rate_rps, {});
  const auto& points = frontier.frontier().points();
  c.schedule = frontier.schedule(
      points[static_cast<std::size_t>(uniform(random, 0, static_cast<double>(points.size())))].choice);
  c.problem.slo_s = c.schedule.latency_s;
  for (const Tuple& t : c.schedule.tuples)
    c.round_robin_bound_s = std::max(c.round_robin_bound_s, 2 * t.configuration.duration_s);
  return c;
}

// Whether the bound itself can be kept at every alignment of the machines: processor demand, as for deadline
// scheduling. A machine that runs back to back must collect its next b requests in the W = bound - d before its start,
// since an older one would be above the bound. The k machines of a tuple stay d / k apart; tuples with different d
// drift past each other, so that sooner or later every tuple has a window that opens at one moment. In the L seconds
// behind it b (floor((L - W) k / d) + 1) requests must be collected for each tuple, and rate x L come: more are asked
// for than come at some L means that no order of dispatch keeps the bound then with full batches. It says nothing of
// whether that alignment comes in a run.
bool demand_exceeds_arrivals(const Case& c) {
  constexpr double kPeriods = 64;
  const double rate = c.problem.modules[0].rate_rps, bound = c.schedule.latency_s;
  double horizon = 0;
  for (const Tuple& t : c.schedule.tuples) horizon = std::max(horizon, kPeriods * t.configuration.duration_s);
  const auto demand = [&](double length) {
    double sum = 0;
    for (const Tuple& t : c.schedule.tuples) {
      const double beyond = length - (bound - t.configuration.duration_s) + kSlack;
      if (beyond >= 0)
        sum += t.configuration.batch * (std::floor(beyond * t.machines / t.configuration.duration_s) + 1);
    }
    return sum;
  };
  for (const Tuple& t : c.schedule.tuples) {  // demand grows only where a window of some machine ends
    for (double length = bound - t.configuration.duration_s; length < horizon;
         length += t.configuration.duration_s / t.machines)
      if (demand(length) > rate * length + kSlack * rate) return true;
  }
  return false;
}

struct Observed {
  double worst_s = 0;
  bool ledger = true;  // every request was answered by a run
};

Observed observe(const Case& c, papers::Harpagon::Dispatch dispatch) {
  const std::vector<PricedClass> classes = {{"first", 1, 1.0}, {"second", 1, 1.7}};
  HarpagonPlan plan;
  plan.modules = {c.schedule};
  evaluate(c.problem, plan);
  Application application = application_of(c.problem);
  const bool tc = dispatch != papers::Harpagon::Dispatch::rr;
  const double rate = c.problem.modules[0].rate_rps + (tc ? 0 : c.schedule.dummy_rps);
  double slowest = 0;
  for (const Tuple& t : c.schedule.tuples) slowest = std::max(slowest, t.configuration.duration_s);
  const double settle = 40 * slowest + 200 / rate, length = 3 * settle;
  const double slo_s =
      tc ? c.schedule.latency_s : 10 * length;  // rr: far off, so that no batch is sent short before the end
  application.slo_ns = static_cast<std::int64_t>(1e9 * slo_s);
  const PlanFile file = harpagon_plan_file(application, c.problem, plan, classes);
  sim::Scenario scenario;
  scenario.topology = core::Topology::from(file.plan, file.applications);
  papers::use(papers::Harpagon{.dispatch = dispatch}, scenario.policy);
  scenario.limits.requests = 65536;
  scenario.streams[0].depth = 65536;
  scenario.drain_ns = static_cast<sim::TimeNs>(1e9 * 40 * length);
  const auto requests = static_cast<std::size_t>(length * rate);
  for (std::size_t i = 0; i < requests; ++i)
    scenario.arrivals.push_back({.at_ns = static_cast<sim::TimeNs>(static_cast<double>(i + 1) / rate * 1e9)});
  const auto counted_until =
      static_cast<sim::TimeNs>((length - settle) * 1e9);  // later ones may wait for company that never comes
  Observed out;
  scenario.on_answer = [&](const sim::AnswerEvent& e) {
    const sim::TimeNs at = scenario.arrivals[e.arrival].at_ns;
    if (at > counted_until) return;
    out.ledger = out.ledger && (e.outcome == Outcome::completed || e.outcome == Outcome::late);
    out.worst_s = std::max(out.worst_s, static_cast<double>(e.at_ns - at) * 1e-9);
  };
  const sim::Outcomes outcomes = sim::run(scenario);
  out.ledger = out.ledger && outcomes.drained && outcomes.requests == requests;
  return out;
}

struct Study {
  std::vector<double> tc_over_bound, printed_over_bound, rr_over_bound, rr_over_tc;
  std::uint32_t tc_above = 0, printed_above = 0, tc_above_needlessly = 0, overdemanded = 0, multi_tuple = 0, broken = 0;
  double worst_excess_s = 0, worst_excess_gaps = 0;

  void add(std::uint32_t number, const Case& c) {
    const Observed tc = observe(c, papers::Harpagon::Dispatch::tc);
    tc_over_bound.push_back(tc.worst_s / c.schedule.latency_s);
    const Observed printed = observe(c, papers::Harpagon::Dispatch::tc_rates);
    printed_over_bound.push_back(printed.worst_s / c.schedule.latency_s);
    if (printed.worst_s > c.schedule.latency_s + kSlack) ++printed_above;
    if (!printed.ledger) ++broken;
    if (c.schedule.tuples.size() == 1) {
      const Observed rr = observe(c, papers::Harpagon::Dispatch::rr);
      rr_over_bound.push_back(rr.worst_s / c.round_robin_bound_s);
      rr_over_tc.push_back(rr.worst_s / tc.worst_s);
      if (!rr.ledger) ++broken;
    }
    const bool demands_more = demand_exceeds_arrivals(c);
    if (demands_more) ++overdemanded;
    if (tc.worst_s > c.schedule.latency_s + kSlack) {
      ++tc_above;
      if (!demands_more) ++tc_above_needlessly;
      worst_excess_s = std::max(worst_excess_s, tc.worst_s - c.schedule.latency_s);
      worst_excess_gaps =
          std::max(worst_excess_gaps, (tc.worst_s - c.schedule.latency_s) * c.problem.modules[0].rate_rps);
      std::fprintf(stderr, "workload %u: tc %.6f s, bound %.6f s:", number, tc.worst_s, c.schedule.latency_s);
      for (const Tuple& t : c.schedule.tuples)
        std::fprintf(stderr, " %.3f x %u on %u (%.4f s)", t.machines, t.configuration.batch, t.configuration.hardware,
                     t.configuration.duration_s);
      std::fprintf(stderr, " at %.1f req/s\n", c.problem.modules[0].rate_rps);
    }
    if (c.schedule.tuples.size() > 1) ++multi_tuple;
    if (!tc.ledger) ++broken;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const bench::Workloads workloads(args);
  Study study;
  workloads.each("dispatch study", [&](std::uint32_t i) { study.add(i, draw(workloads.seed, i)); });
  const std::vector<bench::Bar> bars = {
      {.name = "workloads in which tc is above d + b/w",
       .value = static_cast<double>(study.tc_above),
       .bar = 0,
       .at_least = false,
       .where = ""},
      {.name = "of these, workloads whose machines never ask for more requests than come",
       .value = static_cast<double>(study.tc_above_needlessly),
       .bar = 0,
       .at_least = false,
       .where = ""},
      {.name = "rr over 2 d, distance of the mean from 1",
       .value = std::abs(mean(study.rr_over_bound) - 1),
       .bar = .1,
       .at_least = false,
       .where = ""}};
  const cli::JsonOutput json(args);
  if (!json.alone()) {
    std::printf("seed %llu, %u single-module workloads, %u with several tuples, %u unfinished\n",
                static_cast<unsigned long long>(workloads.seed), workloads.count, study.multi_tuple, study.broken);
    std::printf(
        "tc: worst latency over d + b/w: %.3f on average, %.3f at most; above it in %u workloads (by %.1f us at most, "
        "%.2f of the gap between requests)\n",
        mean(study.tc_over_bound), max_of(study.tc_over_bound), study.tc_above, study.worst_excess_s * 1e6,
        study.worst_excess_gaps);
    std::printf("as printed (tc_rates): %.3f on average, %.3f at most; above it in %u workloads\n",
                mean(study.printed_over_bound), max_of(study.printed_over_bound), study.printed_above);
    std::printf(
        "workloads whose machines can ask for more requests within d + b/w than come (no dispatch of full batches "
        "keeps the bound then): %u\n",
        study.overdemanded);
    std::printf(
        "rr (%zu plans of one tuple): worst latency over 2d: %.3f on average, %.3f to %.3f; over tc's: %.3f on "
        "average\n",
        study.rr_over_bound.size(), mean(study.rr_over_bound), min_of(study.rr_over_bound), max_of(study.rr_over_bound),
        mean(study.rr_over_tc));
    bench::print(bars);
  }
  const Json out = {{"seed", workloads.seed},
                    {"workloads", workloads.count},
                    {"several_tuples", study.multi_tuple},
                    {"unfinished", study.broken},
                    {"tc_above_bound", study.tc_above},
                    {"overdemanded", study.overdemanded},
                    {"tc_above_bound_gaps_max", study.worst_excess_gaps},
                    {"tc_over_bound_mean", mean(study.tc_over_bound)},
                    {"tc_over_bound_max", max_of(study.tc_over_bound)},
                    {"printed_above_bound", study.printed_above},
                    {"printed_over_bound_mean", mean(study.printed_over_bound)},
                    {"printed_over_bound_max", max_of(study.printed_over_bound)},
                    {"rr_over_2d_least", min_of(study.rr_over_bound)},
                    {"rr_over_2d_mean", mean(study.rr_over_bound)},
                    {"rr_over_2d_max", max_of(study.rr_over_bound)},
                    {"rr_over_tc_mean", mean(study.rr_over_tc)},
                    {"bars", bench::to_json(bars)}};
  if (const int failed = json.write(out.dump(1)); failed != 0) return failed;
  return study.broken == 0 ? 0 : 1;
}
