// Freshness of periodic streams that share partitions (freshness_scenarios.h), measured where they are consumed
// (freshness_metric.h): preset leat against a queue with priorities, both with the better of their clients' caps for
// each stream, the queue also with the best of its depths; median and range over the repeats. Each figure that the
// rival publishes is a bar; beside it stands what nobody can do better (freshness_bound.h).
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/coordinated/freshness_bound.h"
#include "bench/coordinated/freshness_metric.h"
#include "bench/coordinated/freshness_scenarios.h"
#include "bench/study.h"
#include "engine/core/model/schedulable.h"
#include "engine/papers/presets.h"

namespace {

using namespace leat;
using bench::Clients;
using bench::Delivery;
using bench::Freshness;
using bench::TimeNs;

constexpr cli::Option kOptions[] = {
    cli::integer_option("seed", "1", 0, 1e15, "of phases and run times"),
    cli::integer_option("repeats", "3", 1, 100, "seeds, from --seed on"),
    cli::integer_option("seconds", "30", 1, 3600, "of each run (4 cameras: 4/3 of it)"),
    {.name = "scenario",
     .type = cli::Type::text,
     .value = "TEXT",
     .fallback = "",
     .help = "only scenarios whose name contains this"},
    {.name = "policy",
     .type = cli::Type::text,
     .value = "NAME",
     .fallback = "leat",
     .help = "preset to compare with the queue"},
    {.name = "strict", .help = "exit status 1 when a bar is missed"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "freshness_study",
    .summary = "coverage of periodic streams on shared partitions: preset leat against a queue with priorities",
    .options = kOptions};

struct Run {
  std::vector<Freshness> streams;
  core::Counters counters;
};

Run run_once(const bench::Scenario& c, const core::Policy& policy, const Clients& clients, std::uint64_t seed,
             TimeNs length) {
  sim::Scenario s = bench::to_simulate(c, policy, clients, seed, length);
  std::vector<std::vector<Delivery>> deliveries(c.sources.size());
  s.duration = [&](const sim::Execution& e) {
    const sim::Arrival& a = s.arrivals[e.tasks.front().token];
    const bench::Model& model = c.models[c.sources[a.stream].model];
    return bench::batch_ns(model, bench::drawn_ns(model, seed, a.stream, a.at_ns), e.items);
  };
  s.on_answer = [&](const sim::AnswerEvent& e) {
    const sim::Arrival& a = s.arrivals[e.arrival];
    if (e.outcome == Outcome::completed || e.outcome == Outcome::late)
      deliveries[a.stream].push_back({e.at_ns, a.at_ns});
  };
  Run out;
  out.counters = sim::run(s).counters;
  for (std::uint32_t i = 0; i < c.sources.size(); ++i) {
    const bench::Source& source = c.sources[i];
    out.streams.push_back(bench::measure(
        {.period = source.period, .max_age = source.max_age, .first = bench::phase_ns(source, seed, i), .end = length},
        deliveries[i]));
  }
  return out;
}

// What a whole scenario comes to: the mean of the uncovered shares of all streams but the background, in the run with
// cap 8; the bound of it with the heavier classes served first.
struct Total {
  std::vector<double> mean, bound;
};

double mean_uncovered(const bench::Scenario& c, const std::vector<Freshness>& streams) {
  double sum = 0, n = 0;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    if (c.sources[i].background) continue;
    sum += streams[i].uncovered_permille;
    ++n;
  }
  return sum / n;
}

struct Cell {
  const bench::Scenario* scenario = nullptr;
  const bench::Source* source = nullptr;
  bool ours = true;
  std::vector<Freshness> repeats;  // of each, the better cap
  std::vector<double> by_cap[2];   // uncovered, cap 1 and cap 8
  std::vector<double> bound;       // uncovered, nobody can do better
  double seconds = 0;
  Total total;                                 // of its scenario and policy; kept by the first stream's cell
  std::array<double, kReasonCount> refused{};  // per run, by reason (cap 8)

  template <class Field>
  std::array<double, 3> of(Field field) const {  // median, least, largest
    std::vector<double> v;
    for (const Freshness& f : repeats) v.push_back(f.*field);
    return spread(v);
  }
  static std::array<double, 3> spread(std::vector<double> v) {
    return {bench::median(v), bench::min_of(v), bench::max_of(v)};
  }
  std::string verdict() const {  // "": no bar
    const double uncovered = of(&Freshness::uncovered_permille)[0], gap = of(&Freshness::longest_gap_ms)[0];
    const double rate = of(&Freshness::answers)[0] / seconds;
    std::string missed;
    if (source->max_uncovered >= 0 && uncovered > source->max_uncovered) missed += " uncovered";
    if (source->max_gap_ms >= 0 && gap > source->max_gap_ms) missed += " gap";
    if (source->min_answers_per_s >= 0 && rate < source->min_answers_per_s) missed += " answers";
    if (source->max_uncovered < 0 && source->max_gap_ms < 0 && source->min_answers_per_s < 0) return "";
    return missed.empty() ? "holds" : "missed:" + missed;
  }
};

std::vector<Cell> study(const std::vector<bench::Scenario>& all, const core::Policy& ours, std::uint64_t seed,
                        std::uint32_t repeats, double seconds) {
  core::Policy queue;
  if (!papers::preset("fifs", queue)) return {};
  const std::vector<Clients> ours_clients = {{true, 1}, {true, 8}};
  const std::vector<Clients> queue_clients = {
      {false, 1}, {false, 4}, {false, 8}};  // a depth of 16 behind a cap of 8 is 8
  cli::Progress progress("freshness study", all.size() * 2, "scenarios");
  std::vector<Cell> cells;
  for (const bench::Scenario& c : all) {
    const double length_s = seconds * c.length;
    const auto length = static_cast<TimeNs>(length_s * 1e9);
    for (bool leat : {true, false}) {
      const std::size_t first = cells.size();
      for (const bench::Source& s : c.sources)
        cells.push_back({.scenario = &c, .source = &s, .ours = leat, .repeats = {}, .bound = {}, .seconds = length_s});
      for (std::uint32_t r = 0; r < repeats; ++r) {
        std::vector<Freshness> best;
        double mean = 1000;
        for (const Clients& clients : leat ? ours_clients : queue_clients) {
          const Run one = run_once(c, leat ? ours : queue, clients, seed + r, length);
          if (best.empty()) best = one.streams;
          if (clients.cap == 8) mean = mean_uncovered(c, one.streams);
          for (std::size_t i = 0; i < best.size(); ++i) {
            Cell& cell = cells[first + i];
            if (one.streams[i].uncovered_permille < best[i].uncovered_permille) best[i] = one.streams[i];
            if (clients.cap != 4) cell.by_cap[clients.cap > 1].push_back(one.streams[i].uncovered_permille);
            for (std::size_t k = 0; k < kReasonCount && clients.cap == 8; ++k) {
              cell.refused[k] += static_cast<double>(one.counters.streams[i].reasons[k]) / repeats;
            }
          }
        }
        cells[first].total.mean.push_back(mean);
        cells[first].total.bound.push_back(bench::min_mean_permille(c, seed + r, length));
        for (std::size_t i = 0; i < best.size(); ++i) {
          cells[first + i].repeats.push_back(best[i]);
          cells[first + i].bound.push_back(leat ? bench::min_uncovered_permille(c, i, seed + r, length) : 0);
        }
      }
      progress.add(1);
    }
  }
  return cells;
}

// What `leat check` would say before the scenario starts.
std::vector<std::string> said_before(const bench::Scenario& c) {
  std::vector<core::Demand> demands;
  for (const bench::Source& s : c.sources) {
    const bench::Model& m = c.models[s.model];
    demands.push_back({.name = s.name,
                       .period_ns = s.period,
                       .max_age_ns = s.max_age,
                       .priority = s.priority,
                       .run_ns = m.p50,
                       .safe_ns = m.p99,
                       .item_ns = bench::batch_ns(m, m.p50, m.batch) / m.batch,
                       .pool = m.pool});
  }
  std::vector<std::string> out;
  for (const core::Finding& f : core::obstacles(demands, {}, core::kPromiseMarginPermille)) out.push_back(f.text);
  return out;
}

std::string bar_of(const bench::Source& s) {
  char text[64] = "";
  int n = 0;
  if (s.max_uncovered >= 0)
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "%.0f", s.max_uncovered);
  if (s.max_gap_ms >= 0)
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), ", %.0f ms", s.max_gap_ms);
  if (s.min_answers_per_s >= 0)
    std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "%s%.2f/s", n > 0 ? ", " : "",
                  s.min_answers_per_s);
  return text;
}

void print(const std::vector<Cell>& cells, std::uint64_t seed) {
  std::printf(
      "seed %llu; uncovered and view in permille; medians [least, largest]; the better cap (and depth) for each "
      "stream\n",
      static_cast<unsigned long long>(seed));
  std::printf("%-22s %-15s %-6s %20s %6s %6s %9s %8s %8s  %-12s %s\n", "scenario", "policy", "stream", "uncovered",
              "bound", "view", "gap ms", "age ms", "answers", "bar", "verdict");
  for (const Cell& c : cells) {
    const auto u = c.of(&Freshness::uncovered_permille);
    char uncovered[48];
    std::snprintf(uncovered, sizeof uncovered, "%.1f [%.1f, %.1f]", u[0], u[1], u[2]);
    std::printf("%-22s %-15s %-6s %20s %6.1f %6.1f %9.1f %8.1f %8.0f  %-12s %s\n", c.scenario->name.c_str(),
                c.ours ? "leat" : "priority queue", c.source->name.c_str(), uncovered, Cell::spread(c.bound)[0],
                c.of(&Freshness::view_permille)[0], c.of(&Freshness::longest_gap_ms)[0],
                c.of(&Freshness::mean_age_ms)[0], c.of(&Freshness::answers)[0], c.ours ? bar_of(*c.source).c_str() : "",
                c.ours ? c.verdict().c_str() : "");
    if (!c.total.mean.empty() && c.ours) {
      for (const std::string& line : said_before(*c.scenario)) std::printf("%-22s %s\n", "", line.c_str());
    }
    if (!c.total.mean.empty()) {
      std::printf(
          "%-22s %-15s        mean of all but the background %.1f, at least %.1f when heavier classes go first\n",
          c.scenario->name.c_str(), c.ours ? "leat" : "priority queue", Cell::spread(c.total.mean)[0],
          Cell::spread(c.total.bound)[0]);
    }
  }
}

Json to_json(const std::vector<Cell>& cells, std::uint64_t seed) {
  Json out = {{"seed", seed}, {"cells", Json::array()}};
  for (const Cell& c : cells) {
    const auto u = c.of(&Freshness::uncovered_permille);
    Json cell = {{"scenario", c.scenario->name},     {"policy", c.ours ? "leat" : "priority queue"},
                 {"stream", c.source->name},         {"uncovered_permille", u[0]},
                 {"uncovered_permille_least", u[1]}, {"uncovered_permille_largest", u[2]}};
    const auto add = [&](const char* key, double Freshness::*field) { cell[key] = c.of(field)[0]; };
    add("view_uncovered_permille", &Freshness::view_permille);
    add("no_result_permille", &Freshness::no_result_permille);
    add("longest_miss_run", &Freshness::longest_miss_run);
    add("longest_gap_ms", &Freshness::longest_gap_ms);
    add("mean_age_ms", &Freshness::mean_age_ms);
    add("peak_age_ms", &Freshness::peak_age_ms);
    add("response_ms_p50", &Freshness::response_ms_p50);
    add("response_ms_p95", &Freshness::response_ms_p95);
    add("response_ms_p99", &Freshness::response_ms_p99);
    add("stale_permille", &Freshness::stale_permille);
    add("answers", &Freshness::answers);
    cell["uncovered_permille_cap_1"] = Cell::spread(c.by_cap[0])[0];
    cell["uncovered_permille_cap_8"] = Cell::spread(c.by_cap[1])[0];
    if (c.source->background) cell["jobs_per_minute"] = c.of(&Freshness::answers)[0] * 60 / c.seconds;
    Json refused = Json::object();
    for (std::size_t k = 0; k < kReasonCount; ++k) {
      if (c.refused[k] > 0) refused[std::string(name_of(static_cast<Reason>(k)))] = c.refused[k];
    }
    cell["refused_cap_8"] = refused;
    if (c.ours) {
      cell["bound_uncovered_permille"] = Cell::spread(c.bound)[0];
      cell["verdict"] = c.verdict();
      if (c.source->max_uncovered >= 0) cell["bar_uncovered_permille"] = c.source->max_uncovered;
    }
    if (!c.total.mean.empty()) {
      if (c.ours) cell["said_before"] = said_before(*c.scenario);
      cell["mean_uncovered_permille"] = Cell::spread(c.total.mean)[0];
      cell["mean_uncovered_permille_bound"] = Cell::spread(c.total.bound)[0];
    }
    out["cells"].push_back(cell);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const Result<core::NamedPolicy> policy = papers::read_policy(args.text("policy"));
  if (!policy.ok()) return cli::fail(kCommand.name, "--policy: " + policy.error());
  const core::Policy& ours = policy->policy;
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  std::vector<bench::Scenario> scenarios = bench::freshness_scenarios();
  std::erase_if(scenarios,
                [&](const bench::Scenario& s) { return s.name.find(args.text("scenario")) == std::string::npos; });
  const std::vector<Cell> cells = study(scenarios, ours, seed, static_cast<std::uint32_t>(args.integer("repeats")),
                                        static_cast<double>(args.integer("seconds")));
  const cli::JsonOutput json(args);
  if (!json.alone()) print(cells, seed);
  if (const int failed = json.write(to_json(cells, seed).dump(1)); failed != 0) return failed;
  const bool missed = std::any_of(cells.begin(), cells.end(),
                                  [](const Cell& c) { return c.ours && c.verdict().starts_with("missed"); });
  return args.flag("strict") && missed ? 1 : 0;
}
