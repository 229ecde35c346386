// What it is worth to change the sets of models that partitions hold while they serve, where memory does not hold all:
// `replan = "auto"` in the simulator, with the daemon's own scheduler, rule and search, beside sets that stay and
// beside sets chosen anew each minute by who knows the next one. Nine modules of six applications, whose times are
// stated.
//
// A partition that changes its models is out for --load-s; never more than a quarter of them, and every model stays
// held. The rule here goes by arrivals alone; in leatd also by what was late.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/study.h"
#include "engine/core/policy/policy_settings.h"
#include "engine/sim/simulator.h"
#include "planner/shared/in_place.h"
#include "planner/shared/replan_rule.h"

namespace {

using namespace leat;
using core::TimeNs;
using Sets = std::vector<std::vector<bool>>;

constexpr cli::Option kOptions[] = {
    cli::integer_option("partitions", "8", 2, 64, "partitions"),
    cli::integer_option("hold", "3", 1, 9, "modules that a partition has room for"),
    cli::integer_option("minutes", "30", 2, 600, "of every load"),
    cli::integer_option("seeds", "1", 1, 100, "runs of each load"),
    cli::real_option("level", "0.85", 0.1, 2, "work of the 95th-percentile minute at batches of 8 over the host's",
                     "PART"),
    cli::real_option("load-s", "1", 0, 60, "how long a partition is out while it takes other models", "SECONDS"),
    {.name = "loads",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "steady,diurnal,bursty,rotate",
     .help = "which loads: steady, diurnal, bursty, rotate"},
    cli::json_option("print the figures as JSON in place of text"),
};
constexpr cli::Command kCommand = {
    .name = "residency_study",
    .summary = "what changing the models that partitions hold is worth, in the simulator",
    .description =
        "In time, of all requests and of the application that fares worst, for sets that stay, for those of "
        "replan = \"auto\", for an oracle's of each minute and for all models everywhere.",
    .options = kOptions,
    .exit_status = "0: bars reached; 1: one is not; 2: bad input"};

struct Module {
  double d1_ms, f, items;
};
struct Application {
  double slo_ms;
  std::vector<Module> modules;  // one behind the other
};
const std::vector<Application> kApplications = {{250, {{14, .30, 1}, {4, .25, 2.5}}}, {150, {{20, .45, 1}}},
                                                {200, {{8, .30, 1}, {5, .35, 2}}},    {100, {{6, .20, 1}}},
                                                {500, {{22, .40, 1}, {3, .30, 6}}},   {400, {{40, .60, 1}}}};
constexpr std::uint32_t kBatch = 16;
constexpr std::size_t kModules = 9;

double run_ms(const Module& m, std::uint32_t batch) { return m.d1_ms * (1 - m.f + m.f * batch); }

double work_s(const Application& a) {  // of a request, at batches of 8
  double sum = 0;
  for (const Module& m : a.modules) sum += m.items * run_ms(m, 8) / 8 / 1000;
  return sum;
}

core::Topology topology_of(const Sets& sets, const std::vector<std::uint8_t>& out) {
  core::Topology t;
  t.partitions.resize(sets.size());
  for (std::uint32_t a = 0; a < kApplications.size(); ++a) {
    core::ApplicationSpec app{
        .slo_ns = static_cast<TimeNs>(kApplications[a].slo_ms * 1e6), .rate_rps = 0, .modules = {}};
    for (const Module& m : kApplications[a].modules) {
      const auto id = static_cast<core::ModuleId>(t.modules.size());
      core::ModuleSpec module{.application = a, .before = {}, .after = {}, .routes = {}};
      module.items_per_request = m.items;
      module.fan_out_cap = m.items > 1 ? 64 : 1;
      if (!app.modules.empty()) {
        module.before.push_back(app.modules.back());
        t.modules[app.modules.back()].after.push_back(id);
      }
      core::RouteSpec route{.module = id, .batch = kBatch, .rate_rps = 0, .stages = {{.pool = {}, .latency = {}}}};
      for (std::uint32_t p = 0; p < sets.size(); ++p)
        if (sets[p][id] && out[p] == 0) route.stages[0].pool.push_back(p);
      for (std::uint32_t b = 1; b <= kBatch; ++b)
        route.stages[0].latency.p50_ns.push_back(static_cast<TimeNs>(run_ms(m, b) * 1e6));
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

planner::ResidencyProblem problem_of(std::size_t partitions, std::size_t hold) {
  planner::ResidencyProblem p;
  p.memory_bytes.assign(partitions, static_cast<double>(hold));
  p.kind.assign(partitions, 0);
  std::vector<double> cost;
  for (std::uint32_t a = 0; a < kApplications.size(); ++a)
    for (const Module& m : kApplications[a].modules) {
      p.module_bytes.push_back(1);
      p.application.push_back(a);
      cost.push_back(run_ms(m, kBatch) / kBatch / 1000);
    }
  p.cost_s.assign(partitions, cost);
  return p;
}

std::vector<double> items() {
  std::vector<double> out;
  for (const Application& a : kApplications)
    for (const Module& m : a.modules) out.push_back(m.items);
  return out;
}

using Rates = std::vector<double>;  // [application], requests a second

struct Load {
  std::string name;
  std::vector<Rates> by_minute;
  std::vector<sim::Arrival> arrivals;
};

// Parts of the work by minute, scaled so that the 95th-percentile minute has `level` of the host's.
Load load_of(const std::string& name, int minutes, double level, std::size_t partitions, std::uint64_t seed) {
  Load out{.name = name, .by_minute = {}, .arrivals = {}};
  const std::size_t n = kApplications.size();
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
      w[a] *= scale / work_s(kApplications[a]);
      counts.push_back(w[a] * 60);
    }
    const auto times = sim::from_series(counts, 60'000'000'000, 1, seed * 100 + a);
    lists.push_back(sim::to_stream(times, static_cast<std::uint32_t>(a)));
  }
  out.arrivals = sim::merged(lists);
  return out;
}

struct Changes {
  Sets first;
  std::vector<sim::Replacement> replacements;
  int swaps = 0, loads = 0;
};

class Study {
 public:
  Study(std::size_t partitions, std::size_t hold, double load_s)
      : partitions_(partitions), load_ns_(static_cast<TimeNs>(load_s * 1e9)), problem_(problem_of(partitions, hold)) {}

  Sets chosen(const Rates& rates) {
    planner::set_weights(problem_, rates, items_, rule_);
    return planner::choose_residency(problem_).holds;
  }

  Changes all() const { return {Sets(partitions_, std::vector<bool>(kModules, true)), {}}; }
  Changes fixed(const Rates& rates) { return {chosen(rates), {}}; }

  Changes oracle(const Load& load) {
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

  // As leatd does it, from the sets for the first minutes' mean.
  Changes by_rule(const Load& load, const Rates& mean) {
    Changes out{chosen(mean), {}};
    Sets now = out.first;
    std::size_t next = 0;
    TimeNs free_ns = 0;
    for (TimeNs at = rule_.look_ns; next < load.arrivals.size(); at += rule_.look_ns) {
      Rates rates(kApplications.size(), 0);
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

  std::vector<double> in_time(const Load& load, const Changes& changes, std::uint64_t seed) const {
    sim::Scenario s;
    s.topology = topology(changes.first);
    s.policy = *core::policy_of("leat", {}, core::presets());
    s.streams.clear();
    for (std::uint32_t a = 0; a < kApplications.size(); ++a) s.streams.push_back({.application = a, .depth = 16384});
    s.arrivals = load.arrivals;
    s.replacements = changes.replacements;
    s.seed = seed;
    std::vector<double> good(kApplications.size(), 0), all(kApplications.size(), 0);
    for (const sim::Arrival& a : load.arrivals) ++all[a.stream];
    s.on_answer = [&](const sim::AnswerEvent& e) {
      if (e.outcome == Outcome::completed) ++good[load.arrivals[e.arrival].stream];
    };
    const sim::Outcomes done = sim::run(s);
    std::vector<double> out = {100 * done.goodput()};
    for (std::size_t a = 0; a < good.size(); ++a) out.push_back(100 * good[a] / std::max(all[a], 1.0));
    return out;
  }

 private:
  core::Topology topology(const Sets& sets) const { return topology_of(sets, std::vector<std::uint8_t>(partitions_)); }

  // Wave after wave; each is out for as long as models load.
  bool begin(const Sets& before, const Sets& after, TimeNs at, Changes& out) const {
    const auto plan = planner::in_place_waves(before, after, std::max<std::size_t>(1, partitions_ / 4));
    if (!plan.bare.empty()) return false;
    Sets now = before;
    for (const auto& wave : plan.waves) {
      std::vector<std::uint8_t> gone(partitions_);
      for (const std::uint32_t p : wave) {
        gone[p] = 1;
        for (std::size_t m = 0; m < kModules; ++m) out.loads += after[p][m] && !before[p][m] ? 1 : 0;
      }
      out.replacements.push_back({at, topology_of(now, gone)});
      for (const std::uint32_t p : wave) now[p] = after[p];
      at += load_ns_;
    }
    out.replacements.push_back({at, topology(now)});
    ++out.swaps;
    return true;
  }

  std::size_t partitions_;
  TimeNs load_ns_;
  planner::ResidencyProblem problem_;
  planner::ReplanRule rule_;
  std::vector<double> items_ = items();
};

struct Row {
  double total = 0, worst = 0;
  int swaps = 0, loads = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto partitions = static_cast<std::size_t>(args.integer("partitions"));
  const int minutes = static_cast<int>(args.integer("minutes")), seeds = static_cast<int>(args.integer("seeds"));
  Study study(partitions, static_cast<std::size_t>(args.integer("hold")), args.real("load-s"));
  const cli::JsonOutput json(args);
  Json cells = Json::object();
  std::vector<bench::Bar> bars;
  for (const std::string name : {"steady", "diurnal", "bursty", "rotate"}) {
    if (("," + args.text("loads") + ",").find("," + name + ",") == std::string::npos) continue;
    std::map<std::string, Row> rows;
    double over_oracle = 0, over_fixed = 1e9, most_swaps = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      const Load load = load_of(name, minutes, args.real("level"), partitions, static_cast<std::uint64_t>(seed));
      Rates mean(kApplications.size(), 0), peak(kApplications.size(), 0);
      for (const Rates& r : load.by_minute)
        for (std::size_t a = 0; a < r.size(); ++a) {
          mean[a] += r[a] / static_cast<double>(load.by_minute.size());
          peak[a] = std::max(peak[a], r[a]);
        }
      std::map<std::string, double> total;
      const auto add = [&](const std::string& how, const Changes& changes) {
        const auto in_time = study.in_time(load, changes, static_cast<std::uint64_t>(seed));
        Row& row = rows[how];
        total[how] = in_time.front();
        row.total += in_time.front() / seeds;
        row.worst += *std::min_element(in_time.begin(), in_time.end()) / seeds;
        row.swaps += changes.swaps;
        row.loads += changes.loads;
      };
      add("all", study.all());
      add("fixed, mean", study.fixed(mean));
      add("fixed, peak", study.fixed(peak));
      add("rule", study.by_rule(load, mean));
      add("oracle", study.oracle(load));
      over_oracle = std::max(over_oracle, total["oracle"] - total["rule"]);
      over_fixed = std::min(over_fixed, total["rule"] - std::max(total["fixed, mean"], total["fixed, peak"]));
      most_swaps = std::max(most_swaps, static_cast<double>(rows["rule"].swaps) / (seed * minutes));
    }
    if (!json.alone()) std::printf("%s\n", name.c_str());
    for (const char* how : {"all", "fixed, mean", "fixed, peak", "rule", "oracle"}) {
      const Row& r = rows[how];
      if (!json.alone())
        std::printf("  %-12s in time %6.2f, worst application %6.2f, %d changes, %d models loaded\n", how, r.total,
                    r.worst, r.swaps, r.loads);
      cells[name][how] = {{"in_time", r.total}, {"worst", r.worst}, {"swaps", r.swaps}, {"loads", r.loads}};
    }
    bars.push_back({name + ": points below the oracle, at most", over_oracle, 1.5, false, ""});
    bars.push_back({name + ": changes a minute", most_swaps, 1, false, ""});
    if (name == "rotate" && minutes >= 30)  // all six have had their turn
      bars.push_back({name + ": points above the better fixed sets", over_fixed, 8, true, ""});
  }
  if (!json.alone()) bench::print(bars);
  if (const int failed = json.write(Json{{"loads", cells}, {"bars", bench::to_json(bars)}}.dump(1)); failed != 0)
    return failed;
  return std::all_of(bars.begin(), bars.end(), [](const bench::Bar& b) { return b.reached(); }) ? 0 : 1;
}
