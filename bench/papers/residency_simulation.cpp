#include "bench/papers/residency_simulation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "engine/core/policy/policy_settings.h"
#include "planner/shared/in_place.h"

namespace leat::bench {

using core::TimeNs;

namespace {

double work_s(const ResidentApplication& a) {  // of a request, at batches of 8
  double sum = 0;
  for (const ResidentModule& m : a.modules) sum += m.items * m.run_ms(8) / 8 / 1000;
  return sum;
}

planner::ResidencyProblem problem_of(const ResidentApplications& applications, std::size_t partitions,
                                     std::size_t hold) {
  planner::ResidencyProblem p;
  p.memory_bytes.assign(partitions, static_cast<double>(hold));
  p.kind.assign(partitions, 0);
  std::vector<double> cost;
  for (std::uint32_t a = 0; a < applications.size(); ++a)
    for (const ResidentModule& m : applications[a].modules) {
      p.module_bytes.push_back(1);
      p.application.push_back(a);
      cost.push_back(m.run_ms(kResidentBatch) / kResidentBatch / 1000);
    }
  p.cost_s.assign(partitions, cost);
  return p;
}

}  // namespace

const ResidentApplications& resident_applications() {
  static const ResidentApplications kApplications = {{250, {{14, .30, 1}, {4, .25, 2.5}}}, {150, {{20, .45, 1}}},
                                                     {200, {{8, .30, 1}, {5, .35, 2}}},    {100, {{6, .20, 1}}},
                                                     {500, {{22, .40, 1}, {3, .30, 6}}},   {400, {{40, .60, 1}}}};
  return kApplications;
}

Rates ResidentLoad::mean() const {
  Rates out(by_minute.front().size(), 0);
  for (const Rates& r : by_minute)
    for (std::size_t a = 0; a < r.size(); ++a) out[a] += r[a] / static_cast<double>(by_minute.size());
  return out;
}

Rates ResidentLoad::peak() const {
  Rates out(by_minute.front().size(), 0);
  for (const Rates& r : by_minute)
    for (std::size_t a = 0; a < r.size(); ++a) out[a] = std::max(out[a], r[a]);
  return out;
}

ResidentLoad resident_load(const ResidentApplications& applications, const std::string& name, int minutes, double level,
                           std::size_t partitions, std::uint64_t seed) {
  ResidentLoad out{.name = name, .by_minute = {}, .arrivals = {}};
  const std::size_t n = applications.size();
  std::mt19937_64 random(seed);
  std::vector<double> burst(n, 1);
  for (int minute = 0; minute < minutes; ++minute) {
    Rates work(n, 1);
    for (std::size_t a = 0; a < n; ++a) {
      const double turn = 2 * std::numbers::pi * (minute / 30.0 + static_cast<double>(a) / static_cast<double>(n));
      if (name == "diurnal") work[a] = 1 + .7 * std::sin(turn);
      if (name == "rotate") work[a] = static_cast<std::size_t>(minute / 5) % n == a ? 7.5 : 1;
      if (name == "bursty") {
        burst[a] = std::pow(burst[a], .5) * std::exp(.7 * std::normal_distribution<>()(random));
        work[a] = burst[a];
      }
    }
    out.by_minute.push_back(work);
  }
  std::vector<double> sums;
  for (const Rates& w : out.by_minute) sums.push_back(std::accumulate(w.begin(), w.end(), 0.0));
  std::sort(sums.begin(), sums.end());
  const double scale = level * static_cast<double>(partitions) / sums[sums.size() * 95 / 100];
  std::vector<std::vector<sim::Arrival>> lists;
  for (std::size_t a = 0; a < n; ++a) {
    std::vector<double> counts;
    for (Rates& w : out.by_minute) {
      w[a] *= scale / work_s(applications[a]);
      counts.push_back(w[a] * 60);
    }
    const auto times = sim::from_series(counts, 60'000'000'000, 1, seed * 100 + a);
    lists.push_back(sim::to_stream(times, static_cast<std::uint32_t>(a)));
  }
  out.arrivals = sim::merged(lists);
  return out;
}

ResidencySimulation::ResidencySimulation(ResidentApplications applications, std::size_t partitions, std::size_t hold,
                                         double load_s)
    : applications_(std::move(applications)),
      partitions_(partitions),
      load_ns_(static_cast<TimeNs>(load_s * 1e9)),
      problem_(problem_of(applications_, partitions, hold)) {
  for (const ResidentApplication& a : applications_)
    for (const ResidentModule& m : a.modules) items_.push_back(m.items);
  modules_ = items_.size();
}

core::Topology ResidencySimulation::topology(const Sets& sets, const std::vector<std::uint8_t>& out) const {
  core::Topology t;
  t.partitions.resize(sets.size());
  for (std::uint32_t a = 0; a < applications_.size(); ++a) {
    core::ApplicationSpec app{
        .slo_ns = static_cast<TimeNs>(applications_[a].slo_ms * 1e6), .rate_rps = 0, .modules = {}};
    for (const ResidentModule& m : applications_[a].modules) {
      const auto id = static_cast<core::ModuleId>(t.modules.size());
      core::ModuleSpec module{.application = a, .before = {}, .after = {}, .routes = {}};
      module.items_per_request = m.items;
      module.fan_out_cap = m.items > 1 ? 64 : 1;
      if (!app.modules.empty()) {
        module.before.push_back(app.modules.back());
        t.modules[app.modules.back()].after.push_back(id);
      }
      core::RouteSpec route{
          .module = id, .batch = kResidentBatch, .rate_rps = 0, .stages = {{.pool = {}, .latency = {}}}};
      for (std::uint32_t p = 0; p < sets.size(); ++p)
        if (sets[p][id] && out[p] == 0) route.stages[0].pool.push_back(p);
      for (std::uint32_t b = 1; b <= kResidentBatch; ++b)
        route.stages[0].latency.p50_ns.push_back(static_cast<TimeNs>(m.run_ms(b) * 1e6));
      route.stages[0].latency.p99_ns = route.stages[0].latency.p50_ns;
      module.routes.push_back(static_cast<core::RouteId>(t.routes.size()));
      t.routes.push_back(std::move(route));
      app.modules.push_back(id);
      t.modules.push_back(std::move(module));
    }
    t.applications.push_back(std::move(app));
  }
  return t;
}

core::Topology ResidencySimulation::topology(const Sets& sets) const {
  return topology(sets, std::vector<std::uint8_t>(partitions_));
}

ResidencySimulation::Sets ResidencySimulation::chosen(const Rates& rates) {
  planner::set_weights(problem_, rates, items_, rule_);
  return planner::choose_residency(problem_).holds;
}

ResidencySimulation::Changes ResidencySimulation::all() const {
  return {Sets(partitions_, std::vector<bool>(modules_, true)), {}};
}
ResidencySimulation::Changes ResidencySimulation::fixed(const Rates& rates) { return {chosen(rates), {}}; }

ResidencySimulation::Changes ResidencySimulation::oracle(const ResidentLoad& load) {
  Changes out{chosen(load.by_minute.front()), {}};
  Sets now = out.first;
  for (std::size_t minute = 1; minute < load.by_minute.size(); ++minute) {
    planner::set_weights(problem_, load.by_minute[minute], items_, rule_);
    const planner::Residency best = planner::choose_residency(problem_);
    if (!planner::worth_a_change(planner::carried(problem_, now, rule_), rule_.busy * best.z, rule_)) continue;
    now = best.holds;
    out.replacements.push_back({static_cast<TimeNs>(minute) * 60'000'000'000, topology(now)});
    ++out.swaps;
  }
  return out;
}

ResidencySimulation::Changes ResidencySimulation::by_rule(const ResidentLoad& load, const Rates& mean) {
  Changes out{chosen(mean), {}};
  Sets now = out.first;
  std::size_t next = 0;
  TimeNs free_ns = 0;
  for (TimeNs at = rule_.look_ns; next < load.arrivals.size(); at += rule_.look_ns) {
    Rates rates(applications_.size(), 0);
    for (; next < load.arrivals.size() && load.arrivals[next].at_ns < at; ++next)
      rates[load.arrivals[next].stream] += 1e9 / static_cast<double>(rule_.look_ns);
    if (at < free_ns) continue;
    planner::set_weights(problem_, rates, items_, rule_);
    const double z = planner::carried(problem_, now, rule_);
    if (!planner::looks_for_better(z, 1, rule_)) continue;
    const planner::Residency better = planner::improve_residency(problem_, now, rule_.per_load);
    if (!planner::worth_a_change(z, rule_.busy * better.z, rule_)) continue;
    if (!begin(now, better.holds, at, out)) continue;
    now = better.holds;
    free_ns = at + rule_.between_ns;
  }
  return out;
}

std::vector<double> ResidencySimulation::in_time(const ResidentLoad& load, const Changes& changes,
                                                 std::uint64_t seed) const {
  sim::Scenario s;
  s.topology = topology(changes.first);
  s.policy = *core::policy_of("leat", {}, core::presets());
  s.streams.clear();
  for (std::uint32_t a = 0; a < applications_.size(); ++a) s.streams.push_back({.application = a, .depth = 16384});
  s.arrivals = load.arrivals;
  s.replacements = changes.replacements;
  s.seed = seed;
  std::vector<double> good(applications_.size(), 0), all(applications_.size(), 0);
  for (const sim::Arrival& a : load.arrivals) ++all[a.stream];
  s.on_answer = [&](const sim::AnswerEvent& e) {
    if (e.outcome == Outcome::completed) ++good[load.arrivals[e.arrival].stream];
  };
  const sim::Outcomes done = sim::run(s);
  std::vector<double> out = {100 * done.goodput()};
  for (std::size_t a = 0; a < good.size(); ++a) out.push_back(100 * good[a] / std::max(all[a], 1.0));
  return out;
}

// Wave after wave; each is out for as long as models load.
bool ResidencySimulation::begin(const Sets& before, const Sets& after, TimeNs at, Changes& out) const {
  const auto plan = planner::in_place_waves(before, after, std::max<std::size_t>(1, partitions_ / 4));
  if (!plan.bare.empty()) return false;
  Sets now = before;
  for (const auto& wave : plan.waves) {
    std::vector<std::uint8_t> gone(partitions_);
    for (const std::uint32_t p : wave) {
      gone[p] = 1;
      for (std::size_t m = 0; m < modules_; ++m) out.loads += after[p][m] && !before[p][m] ? 1 : 0;
    }
    out.replacements.push_back({at, topology(now, gone)});
    for (const std::uint32_t p : wave) now[p] = after[p];
    at += load_ns_;
  }
  out.replacements.push_back({at, topology(now)});
  ++out.swaps;
  return true;
}

}  // namespace leat::bench
