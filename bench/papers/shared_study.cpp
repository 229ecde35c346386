// Partitions that every module may use, as a host without a plan has them: what share of the requests is in time under
// every preset, beside a bound that holds for any scheduler (shared_bound.h).
//
// Profiles are stated: d(b) = d1 (1 - f) + d1 f b, batches up to 32. Load 1 is what batches of 10 carry; unequal: every
// other partition runs at half speed. Everything runs in the simulator, on the daemon's core.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include "bench/papers/shared_bound.h"
#include "bench/papers/shared_cells.h"
#include "bench/study.h"
#include "engine/papers/presets.h"
#include "engine/sim/for_each_job.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"
#include "engine/sim/workload/workload.h"

namespace {

using namespace leat;
using bench::Cell, bench::Pipeline, bench::pipelines, bench::rate_of, bench::topology_of;
using core::TimeNs;

struct Figures {
  double in_time = 0, invalid = 0;
  std::vector<double> of_application;  // in time
};

struct Draw {
  core::Topology topology;
  core::Topology reality;  // what batches really take
  std::vector<sim::Arrival> arrivals;
  std::vector<core::StreamConfig> streams;
  double bound = 0;
};

Result<Draw> draw(const Cell& c, std::uint64_t requests, std::uint64_t seed, std::int64_t off_percent) {
  Draw d{.topology = topology_of(c), .reality = topology_of(c), .arrivals = {}, .streams = {}};
  for (core::RouteSpec& r : d.reality.routes) {  // every module's profile is off by so much, up or down by turns
    const std::int64_t by = r.module % 2 == 0 ? off_percent : -off_percent;
    for (TimeNs& ns : r.stages[0].latency.p50_ns) ns += ns / 100 * by;
  }
  const Result<sim::ArrivalProcess> process = sim::read_process(c.arrivals);
  if (!process) return Error{process.error()};
  std::vector<std::vector<sim::Arrival>> lists;
  double sum = 0;
  for (std::size_t a = 0; a < c.pipeline->applications.size(); ++a) sum += rate_of(c, a) * c.load;
  const auto length = static_cast<TimeNs>(static_cast<double>(requests) / sum * 1e9);
  for (std::size_t a = 0; a < c.pipeline->applications.size(); ++a) {
    const auto times = sim::times(*process, rate_of(c, a) * c.load, length, 0, sim::mix(seed * 31 + a));
    lists.push_back(sim::to_stream(times, static_cast<std::uint32_t>(a)));
    d.streams.push_back({.application = static_cast<std::uint32_t>(a),
                         .depth = 16384,
                         .priority = c.pipeline->applications[a].priority});
  }
  d.arrivals = sim::merged(lists);
  const std::vector<double> weights(lists.size(), 1);
  double total = 0;
  for (std::uint64_t n : bench::shared_bound(d.reality, c.speeds(), d.arrivals, weights))
    total += static_cast<double>(n);
  d.bound = total / static_cast<double>(d.arrivals.size());
  return d;
}

Figures measure(const Draw& d, const core::Policy& policy, std::uint64_t seed, std::uint32_t noise) {
  sim::Scenario s;
  s.topology = d.topology;
  s.policy = policy;
  s.policy.seed = s.seed = seed;
  s.noise_permille = noise;
  s.streams = d.streams;
  s.arrivals = d.arrivals;
  s.estimate_draws = 1000;
  s.reality = &d.reality;
  const sim::Outcomes out = sim::run(s);
  Figures f{out.goodput(), out.invalid_rate(), {}};
  for (std::size_t a = 0; a < d.streams.size(); ++a) {
    const core::RequestCounters& c = out.counters.streams[a];
    f.of_application.push_back(static_cast<double>(c.of(Outcome::completed)) /
                               static_cast<double>(std::max<std::uint64_t>(1, c.submitted)));
  }
  return f;
}

std::string load_name(double load) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", load);
  return text;
}

// A trace of the folder whose name begins with the word, or the word itself.
std::string in_folder(const std::string& word, const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(word)) return entry.path().string();
  }
  return word;
}

std::string arrivals_name(const std::string& arrivals) {  // a trace's without its folder
  return arrivals.find('/') == std::string::npos ? arrivals : std::filesystem::path(arrivals).stem().string();
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

constexpr cli::Option kOptions[] = {
    {.name = "pipelines",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "lv,tm,ga,da,demo,mixed",
     .help = "which of them"},
    {.name = "partitions", .type = cli::Type::text, .value = "LIST", .fallback = "1,2,8,64", .help = "how many"},
    {.name = "loads",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "0.5,0.7,0.9,1.0,1.2,1.5,2.0",
     .help = "1: what batches of 10 carry"},
    {.name = "arrivals",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "poisson,gamma:1.4",
     .help = "processes or traces, as 'leat sim' reads them, or the beginning of a name in --traces"},
    {.name = "traces",
     .type = cli::Type::text,
     .value = "DIR",
     .fallback = "../shared/data/traces",
     .help = "where traces lie that are named without a folder"},
    {.name = "policies",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "leat,pard,nexus,clipper++",
     .help = "presets, with settings (leat:risk_permille=2000)"},
    {.name = "speeds",
     .type = cli::Type::choice,
     .choices = "both|equal|unequal",
     .fallback = "both",
     .help = "of the partitions"},
    cli::integer_option("requests", "14000", 100, 10'000'000, "in a cell, about"),
    cli::integer_option("noise", "0", 0, 500, "standard deviation of run times", "PERMILLE"),
    cli::integer_option("off", "0", 0, 50, "profiles are wrong by so much, up and down by turns", "PERCENT"),
    {.name = "seed", .type = cli::Type::integer, .value = "N", .fallback = "1", .help = "of arrivals and noise"},
    cli::integer_option("threads", "2", 1, 64, "cells at a time"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "shared_study",
    .summary = "every module on every partition: requests in time under each preset, and the most that is possible",
    .options = kOptions};

constexpr std::size_t kWholeGrid = 500;  // cells, at least

struct Table {
  bool as_profiled = true;  // no noise, profiles right
  std::vector<core::NamedPolicy> columns;
  std::vector<Cell> cells;
  std::vector<double> bound;
  std::vector<std::vector<Figures>> figures;  // [cell][column]
};

std::string name_of(const Cell& c) {
  return std::string(c.pipeline->name) + ", " + std::to_string(c.partitions) + (c.unequal ? " unequal, " : " equal, ") +
         arrivals_name(c.arrivals) + ", " + load_name(c.load);
}

// What `leat`, where it is a column, must show in the cells that were run.
std::vector<bench::Bar> bars(const Table& t) {
  const auto leat = std::ranges::find(t.columns, "leat", &core::NamedPolicy::name) - t.columns.begin();
  std::vector<bench::Bar> out;
  if (leat == static_cast<std::ptrdiff_t>(t.columns.size())) return out;
  std::vector<double> gaps, invalid;
  bench::Bar behind{.name = "points behind the best other preset, worst cell", .bar = .2, .at_least = false};
  for (std::size_t i = 0; i < t.cells.size(); ++i) {
    const Cell& c = t.cells[i];
    const Figures& own = t.figures[i][static_cast<std::size_t>(leat)];
    gaps.push_back(100 * (t.bound[i] - own.in_time));
    invalid.push_back(100 * own.invalid);
    for (const Figures& other : t.figures[i]) {
      if (100 * (other.in_time - own.in_time) <= behind.value) continue;
      behind.value = 100 * (other.in_time - own.in_time);
      behind.where = name_of(c);
    }
    if (std::string_view(c.pipeline->name) != "lv" || c.partitions != 8 || c.unequal || c.arrivals != "poisson" ||
        !t.as_profiled)
      continue;
    const double bar = c.load <= 1 ? 99.5 : c.load <= 1.2 ? 91 : c.load <= 1.5 ? 73.5 : 55.5;
    out.push_back({.name = "in time, " + name_of(c), .value = 100 * own.in_time, .bar = bar, .where = {}});
  }
  if (t.columns.size() > 1) out.push_back(behind);
  if (t.as_profiled && t.cells.size() < kWholeGrid) return out;  // means of a part say nothing
  out.push_back({.name = "points to the bound, mean",
                 .value = bench::mean(gaps),
                 .bar = t.as_profiled ? 3.2 : 5,
                 .at_least = false,
                 .where = {}});
  out.push_back({.name = "execution time spent for nothing, %, mean",
                 .value = bench::mean(invalid),
                 .bar = t.as_profiled ? .5 : 1,
                 .at_least = false,
                 .where = {}});
  return out;
}

Json to_json(const Table& t) {
  Json out;
  std::map<std::string, std::vector<double>> gaps, invalid;
  for (std::size_t i = 0; i < t.cells.size(); ++i) {
    const Cell& c = t.cells[i];
    const bool poisson = c.arrivals == "poisson" && !c.unequal;
    Json row{{"pipeline", c.pipeline->name},
             {"partitions", c.partitions},
             {"speeds", c.unequal ? "unequal" : "equal"},
             {"arrivals", arrivals_name(c.arrivals)},
             {"load", c.load},
             {"bound", t.bound[i]}};
    for (std::size_t p = 0; p < t.columns.size(); ++p) {
      const Figures& f = t.figures[i][p];
      row["in_time"][t.columns[p].name] = f.in_time;
      row["invalid"][t.columns[p].name] = f.invalid;
      if (f.of_application.size() > 1) row["in_time_of_application"][t.columns[p].name] = f.of_application;
      gaps[t.columns[p].name].push_back(100 * (t.bound[i] - f.in_time));
      invalid[t.columns[p].name].push_back(100 * f.invalid);
      if (poisson)
        out["in_time"][c.pipeline->name][std::to_string(c.partitions)][load_name(c.load)][t.columns[p].name] =
            100 * f.in_time;
    }
    if (poisson)
      out["in_time"][c.pipeline->name][std::to_string(c.partitions)][load_name(c.load)]["bound"] = 100 * t.bound[i];
    out["cells"].push_back(row);
  }
  for (const core::NamedPolicy& p : t.columns) {
    out["gap_points_mean"][p.name] = bench::mean(gaps[p.name]);
    out["gap_points_worst"][p.name] = bench::max_of(gaps[p.name]);
    out["invalid_percent_mean"][p.name] = bench::mean(invalid[p.name]);
  }
  out["bars"] = bench::to_json(bars(t));
  return out;
}

void print(const Table& t) {
  std::printf("%-40s %7s", "in time (invalid), %", "bound");
  for (const auto& p : t.columns) std::printf(" %18.18s", p.name.c_str());
  for (std::size_t i = 0; i < t.cells.size(); ++i) {
    const Cell& c = t.cells[i];
    std::printf("\n%-6s %3u %-8s %-14.14s %4.1f   %7.2f", c.pipeline->name, c.partitions,
                c.unequal ? "unequal" : "equal", arrivals_name(c.arrivals).c_str(), c.load, 100 * t.bound[i]);
    for (const Figures& f : t.figures[i]) std::printf(" %10.2f (%5.2f)", 100 * f.in_time, 100 * f.invalid);
  }
  std::printf("\n");
  const Json all = to_json(t);
  for (const auto& p : t.columns) {
    std::printf("%s: mean gap to the bound %.2f points, worst %.2f, invalid %.2f %%\n", p.name.c_str(),
                all["gap_points_mean"][p.name].get<double>(), all["gap_points_worst"][p.name].get<double>(),
                all["invalid_percent_mean"][p.name].get<double>());
  }
  bench::print(bars(t));
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  Table table{.as_profiled = args.integer("noise") == 0 && args.integer("off") == 0};
  Result<std::vector<core::NamedPolicy>> columns = core::read_policies(args.text("policies"), papers::study_presets());
  if (!columns) return cli::fail(kCommand.name, "--policies: " + columns.error());
  table.columns = std::move(*columns);
  const std::vector<Pipeline> all = pipelines();
  std::vector<std::string> processes = split(args.text("arrivals"));
  for (std::string& word : processes) word = in_folder(word, args.text("traces"));
  for (const std::string& name : split(args.text("pipelines"))) {
    const auto found = std::ranges::find_if(all, [&](const Pipeline& p) { return p.name == name; });
    if (found == all.end())
      return cli::fail(kCommand.name, "--pipelines: no pipeline '" + name + "'; there are lv, tm, ga, da, demo, mixed");
    for (const std::string& n : split(args.text("partitions"))) {
      for (const bool unequal : {false, true}) {
        if (args.text("speeds") == (unequal ? "equal" : "unequal") || (unequal && std::atoi(n.c_str()) < 2)) continue;
        for (const std::string& arrivals : processes) {
          for (const std::string& load : split(args.text("loads"))) {
            const int partitions = std::atoi(n.c_str());
            const double factor = std::atof(load.c_str());
            if (partitions < 1 || partitions > 4096 || !(factor > 0 && factor <= 100))
              return cli::fail(kCommand.name, "--partitions and --loads: positive numbers, separated by commas");
            table.cells.push_back({&*found, static_cast<std::uint32_t>(partitions), unequal, factor, arrivals});
          }
        }
      }
    }
  }
  table.bound.resize(table.cells.size());
  table.figures.resize(table.cells.size());
  const auto requests = static_cast<std::uint64_t>(args.integer("requests"));
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  std::string problem;
  std::mutex lock;
  cli::Progress progress("shared_study", table.cells.size(), "cells");
  sim::for_each_job(table.cells.size(), static_cast<std::size_t>(args.integer("threads")), [&](std::size_t i) {
    const Result<Draw> one = draw(table.cells[i], requests, seed, args.integer("off"));
    for (std::size_t p = 0; one.ok() && p < table.columns.size(); ++p)
      table.figures[i].push_back(
          measure(*one, table.columns[p].policy, seed, static_cast<std::uint32_t>(args.integer("noise"))));
    const std::scoped_lock held(lock);
    if (one.ok()) {
      table.bound[i] = one->bound;
    } else {
      problem = one.error();
    }
    progress.add(1);
  });
  if (!problem.empty()) return cli::fail(kCommand.name, "--arrivals: " + problem);
  const cli::JsonOutput json(args);
  if (!json.alone()) print(table);
  return json.write(to_json(table).dump(1));
}
